package reader

import (
	"path"
	"strconv"
	"strings"

	"hone/internal/excerpt"
)

func plainText(out string) string {
	return excerpt.Screen(strings.ToValidUTF8(strings.TrimPrefix(out, "\uFEFF"), "\uFFFD"))
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}

func forEachLine(text string, f func(line string)) {
	for line := range strings.Lines(text) {
		f(strings.TrimSuffix(line, "\n"))
	}
}

// section is a line that begins one, as head returned it, and the lines up to the next. The first section has no such line.
type section struct {
	head string
	body []string
}

func sections(text string, head func(line string) (head string, ok bool)) []section {
	all := []section{{}}
	forEachLine(text, func(line string) {
		if h, ok := head(line); ok {
			all = append(all, section{head: h})
			return
		}
		last := &all[len(all)-1]
		last.body = append(last.body, line)
	})
	return all
}

func dedent(lines []string) string {
	indent, first := "", true
	for _, l := range lines {
		if strings.TrimSpace(l) == "" {
			continue
		}
		own := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		if first {
			indent, first = own, false
		}
		for !strings.HasPrefix(own, indent) {
			indent = indent[:len(indent)-1]
		}
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(strings.TrimPrefix(l, indent), " \t") + "\n")
	}
	return strings.Trim(b.String(), "\n")
}

// The body is without what the head says.
func headed(head, body string) string {
	body = strings.Trim(body, "\n")
	if first, rest, _ := strings.Cut(body, "\n"); first == head || strings.HasSuffix(head, ": "+first) {
		body = rest
	}
	if body == "" {
		return head
	}
	return head + "\n" + body
}

// Findings have paths with slashes, and without "./".
func cleanFile(file string) string {
	file = strings.TrimPrefix(strings.TrimSpace(file), "file://")
	if len(file) > 2 && file[0] == '/' && file[2] == ':' { // file:///C:/x
		file = file[1:]
	}
	if file == "" {
		return ""
	}
	if !strings.Contains(file, "/") {
		file = strings.ReplaceAll(file, `\`, "/")
	} else if len(file) > 2 && file[1] == ':' {
		file = strings.ReplaceAll(file, `\`, "/")
	}
	return path.Clean(file)
}

// The path may be of any system.
func isAbs(file string) bool {
	return strings.HasPrefix(file, "/") || len(file) > 2 && file[1] == ':' && (file[2] == '/' || file[2] == '\\')
}
