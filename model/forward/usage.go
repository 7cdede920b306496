package forward

import "hone/model"

// meter reads the usage of a response as it passes. It stores only the current
// event, or the entire response if that is not a stream.
type meter struct {
	known  model.Metered
	frames model.Framer
	off    bool // nothing is generated, or an event was too long
}

// maxEvent limits an event, or a response without events, in bytes.
const maxEvent = 64 << 20

func newMeter(read model.Meter, off bool) *meter {
	m := &meter{off: off}
	m.frames.Event = func(_ string, data []byte) { m.known = read(data) }
	return m
}

// feed adds the next bytes.
func (m *meter) feed(p []byte) {
	if m.off {
		return
	}
	m.frames.Write(p)
	if m.frames.Held() > maxEvent {
		m.off, m.frames = true, model.Framer{}
	}
}

// end ends the response; the last event needs no blank line.
func (m *meter) end() {
	if !m.off {
		m.frames.End()
	}
}

// result returns the usage if the response is complete and reports it, which a
// stream may do before its end; otherwise nil.
func (m *meter) result(atEnd bool) *model.Usage {
	if m.off || !atEnd && !m.known.Final {
		return nil
	}
	return m.known.Usage
}

// missingUsage describes why result returns nil for a complete response.
func (m *meter) missingUsage() string {
	if m.known.Reported {
		return "the response reports an implausible usage"
	}
	return "the response ended without reporting its usage"
}
