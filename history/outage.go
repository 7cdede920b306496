package history

import "time"

// Outage is a period in which every attempt at a model call failed. The zero value is no
// outage, and is ready to use.
type Outage struct {
	Since time.Time // of the first failure
	Until time.Time // when the attempt that got the reply began, or whatever else ended the wait; zero if nothing has
	Tries int       // that failed
	Error string    // of the last one
	last  time.Time // of the last one
	next  time.Time // when another attempt begins
}

const longOutage = time.Minute

// Add adds the next event of a run. It returns the outage that the event ended; the
// zero value if it ended none.
func (o *Outage) Add(e Event) (over Outage) {
	switch v := e.Payload.(type) {
	case Retried:
		if o.Tries == 0 {
			o.Since = e.Time
		}
		o.Tries, o.Error, o.last = o.Tries+1, v.Error, e.Time
		o.next = e.Time.Add(time.Duration(v.Wait) * time.Millisecond)
	case Replied:
		return o.end(o.next) // however long the model took to reply
	case FailedOver, End:
		return o.end(e.Time)
	case Resumed: // nothing is known about the time since the last failure
		return o.end(o.last)
	}
	return over
}

func (o *Outage) end(at time.Time) (over Outage) {
	if over = *o; over.Tries > 0 {
		over.Until = at
	}
	*o = Outage{}
	return over
}

// Long reports whether the outage is worth a line, because it has lasted for a minute or
// more. If it is not over, it has lasted until now.
func (o Outage) Long(now time.Time) bool { return o.Tries > 0 && o.Lasted(now) >= longOutage }

// Lasted returns how long the outage lasted, or has lasted until now.
func (o Outage) Lasted(now time.Time) time.Duration {
	if !o.Until.IsZero() {
		now = o.Until
	}
	return now.Sub(o.Since)
}

// Outages returns the long outages of a run, in order. The last one may not be
// over.
func Outages(events []Event, now time.Time) []Outage {
	var all []Outage
	var o Outage
	for _, e := range events {
		if over := o.Add(e); over.Long(now) {
			all = append(all, over)
		}
	}
	if o.Long(now) {
		all = append(all, o)
	}
	return all
}
