package history

// Round is what happened in a round, decided or not.
type Round struct {
	Manifest string     // object with the manifest of the tree when the round opened; empty if it did not open
	Touched  bool       // an apply was recorded, or a command may have changed something
	Edited   bool       // an edit left other contents than it found
	Restored []Restored // protected files that commands changed; may repeat
	// Agent is the first event of the round that began an agent's session; nil if
	// there is none. Its payload is an [Asked].
	Agent *Event
	// Stronger reports whether a role was asked that has a stronger model left.
	Stronger bool
}

func (r *Round) fold(e Event) {
	r.Touched = r.Touched || e.RunsCommand()
	switch v := e.Payload.(type) {
	case Opened:
		*r = Round{Manifest: v.Manifest}
	case Snapshot:
		r.Restored = append(r.Restored, v.Restored...)
	case Applied:
		r.Touched = true
		for _, edit := range v.Verdicts {
			r.Edited = r.Edited || edit.Before.Digest != edit.After.Digest
		}
	case Asked:
		r.Stronger = r.Stronger || v.Stronger
		if v.Command && r.Agent == nil {
			r.Agent = &e
		}
	}
}

// RunsCommand reports whether the event is the begin of something that runs
// commands of a model, or the record of a command. Nothing says what such a
// command changes. Checks do not count, although they run commands: they are
// not a change that a round makes.
func (e Event) RunsCommand() bool {
	switch v := e.Payload.(type) {
	case CommandBegun, CommandResult:
		return true
	case ToolCall:
		return v.Command
	case Asked:
		return v.Command
	}
	return false
}
