package block

import (
	"errors"
	"fmt"
	"strings"

	"hone/internal/reply"
)

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

// Check returns nil if Parse(Format(r)) returns r without problems; a nil and
// an empty Content count as equal. Otherwise the error says what cannot be
// written: text that contains marker lines or ends in a carriage return, a file
// without a final line break, one to delete with content, a path that is empty, is
// "end" or "delete", has backticks or white space around it or spans lines, a file written twice, files together with Done, or
// neither.
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
		return errors.New("the file occurs twice")
	}
	seen[cleaned] = true
	content := string(f.Content)
	if f.Delete && content != "" {
		return errors.New("a file to delete has content")
	}
	if content != "" && !strings.HasSuffix(content, "\n") {
		return errors.New("the content does not end in a line break")
	}
	return checkLines(content)
}

func checkPath(name string) error {
	switch {
	case name == "":
		return errors.New("the path is empty")
	case reply.Unquoted(name) != name:
		return errors.New("the path has backticks around it")
	case strings.EqualFold(name, "end"), strings.EqualFold(name, "delete"):
		return errors.New("this path would close a block; write ./ before it")
	case strings.TrimSpace(name) != name:
		return errors.New("the path has white space around it")
	case strings.Contains(name, "\n"):
		return errors.New("the path spans several lines")
	}
	return nil
}

// A slip is text inside a block.
func checkLines(s string) error {
	number := 0
	for line := range strings.Lines(s) {
		number++
		if _, r := classify(line); r == opening || r == closing {
			return fmt.Errorf("line %d is a marker: %s", number, displayLine(line))
		}
	}
	return nil
}
