package block

import "strings"

// Format writes a reply: thoughts, debugging thoughts, files and $$$ blocks,
// separated by empty lines and ending in a line break. The zero Reply is the
// empty text. Format adds a missing final line break to a file. It does not
// check whether Parse would read the same reply; [Reply.Check] does.
func Format(r Reply) string {
	var b strings.Builder
	for _, s := range r.Thoughts {
		writeText(&b, thought, s)
	}
	for _, s := range r.Debug {
		writeText(&b, debug, s)
	}
	for _, f := range r.Files {
		writeFile(&b, f)
	}
	for _, s := range r.Done {
		writeText(&b, done, s)
	}
	return b.String()
}

func writeText(b *strings.Builder, k kind, s string) {
	if s != "" {
		s += "\n"
	}
	writeBlock(b, k.opening(), s, k.closing())
}

func writeFile(b *strings.Builder, f File) {
	mark := file.sign()
	if strings.HasPrefix(f.Path, "^") {
		// With a fourth sign in a row the line would not be a marker.
		mark += " "
	}
	content, last := string(f.Content), file.closing()
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	if f.Delete {
		content, last = "", "^^^delete"
	}
	writeBlock(b, mark+f.Path, content, last)
}

// The contents are empty or end in a line break.
func writeBlock(b *strings.Builder, first, content, last string) {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	for _, s := range []string{first, "\n", content, last, "\n"} {
		b.WriteString(s)
	}
}
