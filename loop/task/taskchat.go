package task

import (
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// turn is a turn as it is written in the file, not yet validated.
type writtenTurn struct {
	role        string
	line        int
	content     *string // nil if there is none
	raw         string  // the content as it is written
	contentLine int
}

// taskReader collects what a decoded tree lacks: the lines of the keys, how a text is
// quoted, and the order of the turns of two lists.
type taskReader struct {
	name   string
	parser unstable.Parser
	lines  map[string]int
	turns  []writtenTurn
	fault  error // the first error in the chat

	section []string
	inTurn  bool // the section is the last turn's
}

func readTask(name string, text []byte) *taskReader {
	r := &taskReader{name: name, lines: map[string]int{}}
	r.parser.Reset(text)
	for r.parser.NextExpression() {
		switch e := r.parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			var line int
			r.section, line = r.key(nil, e)
			r.startSection(e.Kind == unstable.ArrayTable, line)
		case unstable.KeyValue:
			r.readPair(r.section, e)
		}
	}
	return r
}

func (r *taskReader) line(path ...string) int { return r.lines[strings.Join(path, "\x00")] }

// The lines of all parts of the path are recorded.
func (r *taskReader) key(section []string, node *unstable.Node) (path []string, line int) {
	path = slices.Clone(section)
	for key := node.Key(); key.Next(); {
		path = append(path, string(key.Node().Data))
		line = r.parser.Shape(key.Node().Raw).Start.Line
		at := strings.Join(path, "\x00")
		if _, known := r.lines[at]; !known {
			r.lines[at] = line
		}
	}
	return path, line
}

func (r *taskReader) startSection(list bool, line int) {
	r.inTurn = false
	switch path := r.section; {
	case path[0] != "chat" || len(path) > 2:
	case list && len(path) == 2:
		r.turns = append(r.turns, writtenTurn{role: path[1], line: line})
		r.inTurn = true
	case list:
		r.turns = append(r.turns, writtenTurn{line: line})
		r.inTurn = true
	case len(path) == 2:
		r.noteMisplaced(line, "[chat."+path[1]+"] is one table, and turns are a list")
	}
}

func (r *taskReader) readPair(section []string, node *unstable.Node) {
	path, line := r.key(section, node)
	switch {
	case r.inTurn && len(path) == len(r.section)+1:
		r.turns[len(r.turns)-1].set(&r.parser, path[len(path)-1], line, node.Value())
	case len(path) == 1 && path[0] == "chat" && node.Value().Kind == unstable.Array:
		r.readInline(line, node.Value())
	case path[0] == "chat" && !r.inTurn && len(path) > 1 && (path[1] == "user" || path[1] == "assistant"):
		r.noteMisplaced(line, strings.Join(path, ".")+" is not below the header of a turn")
	}
	if node.Value().Kind == unstable.InlineTable {
		for members := node.Value().Children(); members.Next(); {
			r.readPair(path, members.Node())
		}
	}
}

// Turns may be one value, as in chat = [{role = "user", content = "…"}].
func (r *taskReader) readInline(line int, list *unstable.Node) {
	for tables := list.Children(); tables.Next(); {
		t := writtenTurn{line: line}
		if tables.Node().Kind == unstable.InlineTable {
			for members := tables.Node().Children(); members.Next(); {
				path, at := r.key(nil, members.Node())
				if len(path) == 1 {
					t.set(&r.parser, path[0], at, members.Node().Value())
				}
			}
		}
		r.turns = append(r.turns, t)
	}
}

// Unknown members are ignored.
func (t *writtenTurn) set(parser *unstable.Parser, name string, line int, value *unstable.Node) {
	if value.Kind != unstable.String {
		return
	}
	text := string(value.Data)
	switch {
	case name == "content":
		t.content, t.raw, t.contentLine = &text, string(parser.Raw(value.Raw)), line
	case name == "role" && t.role == "":
		t.role = text
	}
}

func (r *taskReader) noteMisplaced(line int, problem string) {
	if r.fault == nil {
		r.fault = r.wrong(line, twoForms, "%s", problem)
	}
}
