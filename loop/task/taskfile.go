package task

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"hone/internal/lazyregexp"
	"hone/loop"
	"hone/model"
	"hone/workspace"
)

// taskFile is a conversation that asks for something, with what its file adds to the
// settings.
type taskFile struct {
	// File is the task file, relative to the tree's root; empty if the task was
	// given as plain text.
	File string `json:"file,omitempty"`
	// Turns are the messages. They alternate; the first and the last are the
	// user's.
	Turns []turn `json:"turns"`
	// Allow lists programs that commands may run in addition to hone's own list.
	Allow []string `json:"allow,omitempty"`
	// Check is the command line that decides whether the task is done; empty if the
	// file names none. A run uses the one that the file names when it starts (ruling
	// S3).
	Check string `json:"check,omitempty"`
	// Judge says what may change what judges the work: "ask", "keep" or "free"; empty if
	// the file does not say.
	Judge string `json:"judge,omitempty"`
}

// turn is one message of a task.
type turn struct {
	Role model.Role `json:"role"`
	Text string     `json:"text"`
}

// Size returns the length of the turns' texts in bytes.
func (t taskFile) Size() int {
	n := 0
	for _, turn := range t.Turns {
		n += len(turn.Text)
	}
	return n
}

// line is counted from 1; 0 is the whole file.
func wrongTask(file string, line int, hint, problem string, args ...any) error {
	if line > 0 {
		file = fmt.Sprintf("%s:%d", file, line)
	}
	return loop.Usage(file+": "+fmt.Sprintf(problem, args...), hint)
}

// loadTask reads a task file of a tree. The error is a [*hone.UsageError] if the file exists and
// is invalid, and wraps [fs.ErrNotExist] if it does not exist.
func loadTask(tree *workspace.Tree, name string) (taskFile, error) {
	if path.Ext(name) != ".toml" {
		return taskFile{}, wrongTask(name, 0, "rename it, or give the task as text", "a task file's name ends in .toml")
	}
	text, _, err := tree.Read(name)
	if err != nil {
		return taskFile{}, fmt.Errorf("task file: %w", err)
	}
	return parseTask(name, text)
}

const twoForms = "start each turn with [[chat.user]] or [[chat.assistant]], and give it a content"

// bareName matches a program's name without path, options or quotes.
var bareName = lazyregexp.New(`^[A-Za-z0-9_.+-]+$`)

// parseTask parses the text of a task file in CodeScribe's form: [[chat.user]] and
// [[chat.assistant]] tables in the order of the conversation, or [[chat]] tables
// with a role. [tools] bash and [check] command and judge are optional; other keys are
// ignored. The error is a [*hone.UsageError].
func parseTask(name string, text []byte) (taskFile, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	var doc struct {
		Tools struct{ Bash []string }
		Check struct {
			Command *string
			Judge   string
		}
	}
	if err := toml.Unmarshal(text, &doc); err != nil {
		line, problem := tomlFault(err)
		return taskFile{}, wrongTask(name, line, "toml.io explains the form", "%s", problem)
	}
	wrong := func(near, hint, problem string, args ...any) (taskFile, error) {
		return taskFile{}, wrongTask(name, lineOf(text, near), hint, problem, args...)
	}
	t := taskFile{File: name}
	for _, program := range doc.Tools.Bash {
		if !bareName.MatchString(program) {
			return wrong(cmp.Or(program, "bash"), `name programs, as in bash = ["python3", "make"]`, "%q is not the bare name of a program", program)
		}
		if !slices.Contains(t.Allow, program) {
			t.Allow = append(t.Allow, program)
		}
	}
	if command := doc.Check.Command; command != nil && strings.TrimSpace(*command) == "" {
		return wrong("command", `write command = "make test"`, "command is not a command line")
	} else if command != nil {
		t.Check = *command
	}
	switch t.Judge = doc.Check.Judge; t.Judge {
	case "", "ask", "keep", "free":
	default:
		return wrong("judge", `write judge = "ask", "keep" or "free"`, "judge is none of the three words")
	}
	var err error
	t.Turns, err = readChat(name, text)
	return t, err
}

// line is 0 if it is not known.
func tomlFault(err error) (line int, problem string) {
	problem, _, _ = strings.Cut(strings.TrimPrefix(err.Error(), "toml: "), " into ")
	if at := (*toml.DecodeError)(nil); errors.As(err, &at) {
		line, _ = at.Position()
		problem = strings.TrimPrefix(strings.Join(at.Key(), ".")+": "+problem, ": ")
	}
	return line, problem
}

func lineOf(text []byte, near string) int {
	before, _, _ := bytes.Cut(text, []byte(near))
	return 1 + bytes.Count(before, []byte("\n"))
}

// A decoded file lacks the order of the turns of two lists, and the lines.
func readChat(name string, text []byte) (turns []turn, err error) {
	var table []string // the header above a key; that of a turn is chat, alone or with the role
	var lines []int    // of the turns' headers
	inTurn := false
	var p unstable.Parser
	for p.Reset(text); p.NextExpression(); {
		e := p.Expression()
		var key []string
		line := 0
		for k := e.Key(); k.Next(); key = append(key, string(k.Node().Data)) {
			line = p.Shape(k.Node().Raw).Start.Line
		}
		switch path := slices.Concat(table, key); {
		case e.Kind != unstable.KeyValue:
			table, inTurn = key, key[0] == "chat" && len(key) <= 2 && (e.Kind == unstable.ArrayTable || len(key) == 2)
			if inTurn {
				turns, lines = append(turns, turn{Role: model.Role(strings.Join(key[1:], "."))}), append(lines, line)
			}
		case !inTurn && path[0] == "chat" && (len(path) == 1 || path[1] == "user" || path[1] == "assistant"):
			return nil, wrongTask(name, line, twoForms, "%s is not below the header of a turn", strings.Join(path, "."))
		case !inTurn || len(key) > 1 || e.Value().Kind != unstable.String:
		case key[0] == "content":
			turns[len(turns)-1].Text = string(e.Value().Data)
		case key[0] == "role" && len(table) == 1:
			turns[len(turns)-1].Role = model.Role(e.Value().Data)
		}
	}
	if turns == nil {
		return nil, wrongTask(name, 0, twoForms, "it has no chat, so nothing is asked for")
	}
	for i, t := range turns {
		wrong := func(hint, problem string, args ...any) ([]turn, error) {
			return nil, wrongTask(name, lines[i], hint, problem, args...)
		}
		switch want := []model.Role{model.User, model.Assistant}[i%2]; {
		case t.Role != model.User && t.Role != model.Assistant:
			return wrong("a turn is the user's or the assistant's", "turn %d has no role %q", i+1, t.Role)
		case t.Role != want:
			return wrong("the chat starts with the user, and the two alternate", "turn %d is the %s's and must be the %s's", i+1, t.Role, want)
		case strings.TrimSpace(t.Text) == "":
			return wrong("say what you want: content = '''…'''", "the turn has no content, or its content is not a text")
		case i == len(turns)-1 && want == model.Assistant:
			return wrong("end with what the user wants", "the chat ends with the assistant")
		}
	}
	return turns, nil
}
