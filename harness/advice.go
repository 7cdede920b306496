package harness

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"unicode/utf8"

	"hone/loop"
	"hone/workspace"
	"hone/workspace/secret"
)

// Advise reads the workspace's advice into a loop's settings, without the secrets that
// the guard finds. It takes the first usable file at the root. If there is none, but one
// that cannot be used, it tells the user why.
func (h Host) Advise(l loop.Loop, tree *workspace.Tree, g *secret.Guard) {
	advice := &l.Shared().RepoAdvice
	if advice.Off {
		return
	}
	problem := ""
	for _, name := range []string{"AGENTS.md", "CLAUDE.md", "GEMINI.md"} { // in order of precedence
		content, _, err := tree.Read(name)
		text := strings.ReplaceAll(string(bytes.TrimPrefix(content, []byte("\ufeff"))), "\r\n", "\n")
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && strings.TrimSpace(text) == "":
		case err == nil && utf8.ValidString(text) && !strings.ContainsRune(text, 0):
			*advice = loop.Advice{File: name, Size: len(content)}
			advice.Text, advice.Cut = beginning(g.Redact(text), loop.MaxAdvice)
			return
		case problem != "":
		case err != nil:
			problem = err.Error()
		default:
			problem = name + ": it is not UTF-8 text"
		}
	}
	if problem != "" {
		h.Note("the model gets no advice from the repository: " + problem)
	}
}

// A line that is longer than most is cut.
func beginning(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, false
	}
	if end := strings.LastIndexByte(text[:most], '\n'); end >= 0 {
		return text[:end+1], true
	}
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most], true
}
