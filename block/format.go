package block

import (
	"errors"
	"fmt"
	"strings"
)

// Format writes a reply: thoughts, debugging thoughts, files and $$$ blocks,
// an empty line between each two, ending in a line break. The zero Reply is
// the empty text. A file without a last line break gets one. Otherwise what
// cannot be written is not held against r here, and Parse reads something
// else then; [Reply.Check] tells.
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
		// A fourth sign in a row would make the line an underline.
		mark += " "
	}
	content := string(f.Content)
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	writeBlock(b, mark+f.Path, content, file.closing())
}

// writeBlock writes marker lines around contents that are empty or end in a
// line break.
func writeBlock(b *strings.Builder, first, content, last string) {
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	for _, s := range []string{first, "\n", content, last, "\n"} {
		b.WriteString(s)
	}
}

// Check returns nil if Parse reads from Format(r) the same r and finds
// nothing wrong; a nil and an empty Content count as the same. Else its error
// says what cannot be written, or should not: text with marker lines or a
// last carriage return, a file without a last line break, a path that is
// empty, called "end", has white space around it or several lines, a file
// given twice, files together with Done, or neither.
func (r Reply) Check() error {
	for k, texts := range [kinds][]string{thought: r.Thoughts, debug: r.Debug, done: r.Done} {
		for i, s := range texts {
			if err := checkText(s); err != nil {
				return fmt.Errorf("%s block %d: %w", kind(k).sign(), i+1, err)
			}
		}
	}
	seen := make(map[string]bool)
	for _, f := range r.Files {
		if err := checkFile(f, seen); err != nil {
			return fmt.Errorf("file %q: %w", f.Path, err)
		}
	}
	if len(r.Files) == 0 && len(r.Done) == 0 {
		return errors.New("the reply has neither files nor a $$$ block")
	}
	if len(r.Files) > 0 && len(r.Done) > 0 {
		return errors.New("the reply has files and a $$$ block")
	}
	return nil
}

func checkText(s string) error {
	if strings.HasSuffix(s, "\r") {
		return errors.New("the text ends in a carriage return")
	}
	return checkLines(s)
}

func checkFile(f File, seen map[string]bool) error {
	if err := checkPath(f.Path); err != nil {
		return err
	}
	cleaned := clean(f.Path)
	if seen[cleaned] {
		return errors.New("the file is given twice")
	}
	seen[cleaned] = true
	content := string(f.Content)
	if content != "" && !strings.HasSuffix(content, "\n") {
		return errors.New("the content does not end in a line break")
	}
	return checkLines(content)
}

func checkPath(name string) error {
	switch {
	case name == "":
		return errors.New("the path is empty")
	case strings.EqualFold(name, "end"):
		return errors.New("this path would close a block; write ./ before it")
	case strings.TrimSpace(name) != name:
		return errors.New("the path has white space around it")
	case strings.Contains(name, "\n"):
		return errors.New("the path has several lines")
	}
	return nil
}

// checkLines refuses text in which a line is a marker. A slip is text inside
// a block.
func checkLines(s string) error {
	number := 0
	for line := range strings.Lines(s) {
		number++
		if _, r := classify(line); r == opening || r == closing {
			return fmt.Errorf("line %d is a marker: %s", number, shown(line))
		}
	}
	return nil
}
