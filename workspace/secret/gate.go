package secret

// Gate removes keys and other known values from a text that arrives in pieces. A
// value may be split between pieces, so the gate delays the end of the text
// while it may be the start of one.
type Gate struct {
	guard   *Guard
	show    func(string)
	pending string
}

// NewGate returns a gate that passes the text on to show.
func NewGate(guard *Guard, show func(string)) *Gate { return &Gate{guard: guard, show: show} }

// Pass takes the next piece of the text.
func (g *Gate) Pass(text string) {
	g.pending += text
	if n := g.guard.Complete(g.pending); n > 0 {
		g.show(g.guard.RedactKnown(g.pending[:n]))
		g.pending = g.pending[n:]
	}
}

// Flush shows the delayed text. Call it at the end of the text.
func (g *Gate) Flush() {
	if g.pending != "" {
		g.show(g.guard.RedactKnown(g.pending))
		g.pending = ""
	}
}
