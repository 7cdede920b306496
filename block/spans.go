package block

// Spans returns the parts of a text between the opening and the closing marker of
// a block, if no other marker is between them, as offsets in order.
func Spans(text string) [][2]int {
	var spans [][2]int
	p := &parser{text: text}
	open, from := kinds, 0
	for start := 0; start < len(text); {
		line := p.lineAt(start)
		switch k, r := classify(line); {
		case r == opening:
			open, from = k, start+len(line)
		case r == closing && k == open:
			spans = append(spans, [2]int{from, start})
			open = kinds
		case r == closing:
			open = kinds
		}
		start += len(line)
	}
	return spans
}
