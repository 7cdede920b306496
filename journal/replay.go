package journal

// OpenReplay opens a run's journal to replay the run. The returned journal
// starts without events, and Skip adds the next recorded one. It
// writes nothing, and Append fails. OpenReplay reads the complete file and checks its chain
// first.
func (h *Home) OpenReplay(run string) (*Journal, error) {
	events, err := h.Read(run)
	if err != nil {
		return nil, err
	}
	j := newJournal(h, run, nil)
	j.Pack, j.remaining = h.Idle(run), events
	return j, nil
}

// Remaining returns the recorded events that are still to be replayed, in
// order; nil unless the journal was opened by OpenReplay.
func (j *Journal) Remaining() []Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.remaining
}

// Skip returns the next recorded event and moves past it.
// There must be one; see [Journal.Remaining].
func (j *Journal) Skip() Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.remaining[0]
	j.remaining = j.remaining[1:]
	j.add(e)
	for _, o := range j.observers {
		if o.After != nil {
			o.After(e)
		}
	}
	return e
}
