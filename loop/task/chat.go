package task

import (
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// turn is a turn as a file has it, before anything is made of it.
type turn struct {
	role    string
	line    int
	content *string // nil: none
	raw     string  // the content as it is written
	// contentLine is where the content stands.
	contentLine int
}

// reader keeps of a file what a decoded tree does not have: where a key
// stands, how a text is written, and in which order the turns of two lists
// follow each other.
type reader struct {
	name   string
	parser unstable.Parser
	lines  map[string]int
	turns  []turn
	fault  error // the first one, of the chat

	section []string
	inTurn  bool // the section is the last turn's
}

// read walks through a file that is known to be TOML.
func read(name string, text []byte) *reader {
	r := &reader{name: name, lines: map[string]int{}}
	r.parser.Reset(text)
	for r.parser.NextExpression() {
		switch e := r.parser.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			var line int
			r.section, line = r.key(nil, e)
			r.header(e.Kind == unstable.ArrayTable, line)
		case unstable.KeyValue:
			r.pair(r.section, e)
		}
	}
	return r
}

// line is where a key first stands; 0 where it does not.
func (r *reader) line(path ...string) int { return r.lines[strings.Join(path, "\x00")] }

// key is the whole path of a key and its line. It takes down the lines of all
// parts of the path.
func (r *reader) key(section []string, node *unstable.Node) (path []string, line int) {
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

// header begins a section, and a turn where it is one's.
func (r *reader) header(list bool, line int) {
	r.inTurn = false
	switch path := r.section; {
	case path[0] != "chat" || len(path) > 2:
	case list && len(path) == 2:
		r.turns = append(r.turns, turn{role: path[1], line: line})
		r.inTurn = true
	case list:
		r.turns = append(r.turns, turn{line: line})
		r.inTurn = true
	case len(path) == 2:
		r.misplaced(line, "[chat."+path[1]+"] is one table, and turns are a list")
	}
}

// pair takes a key with its value.
func (r *reader) pair(section []string, node *unstable.Node) {
	path, line := r.key(section, node)
	switch {
	case r.inTurn && len(path) == len(r.section)+1:
		r.turns[len(r.turns)-1].take(&r.parser, path[len(path)-1], line, node.Value())
	case len(path) == 1 && path[0] == "chat" && node.Value().Kind == unstable.Array:
		r.inline(line, node.Value())
	case path[0] == "chat" && !r.inTurn && len(path) > 1 && (path[1] == "user" || path[1] == "assistant"):
		r.misplaced(line, strings.Join(path, ".")+" stands under no turn's header")
	}
	if node.Value().Kind == unstable.InlineTable {
		for members := node.Value().Children(); members.Next(); {
			r.pair(path, members.Node())
		}
	}
}

// inline takes turns that are written as one value, as in
// chat = [{role = "user", content = "…"}].
func (r *reader) inline(line int, list *unstable.Node) {
	for tables := list.Children(); tables.Next(); {
		t := turn{line: line}
		if tables.Node().Kind == unstable.InlineTable {
			for members := tables.Node().Children(); members.Next(); {
				path, at := r.key(nil, members.Node())
				if len(path) == 1 {
					t.take(&r.parser, path[0], at, members.Node().Value())
				}
			}
		}
		r.turns = append(r.turns, t)
	}
}

// take takes a turn's member; those that it does not know are passed over.
func (t *turn) take(parser *unstable.Parser, name string, line int, value *unstable.Node) {
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

func (r *reader) misplaced(line int, problem string) {
	if r.fault == nil {
		r.fault = r.wrong(line, twoForms, "%s", problem)
	}
}
