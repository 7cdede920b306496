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
		Chat  any
		Tools struct{ Bash []string }
		Check struct {
			Command *string
			Judge   string
		}
	}
	if err := toml.Unmarshal(text, &doc); err != nil {
		problem, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "toml: "), " into ")
		line := 0
		if at := (*toml.DecodeError)(nil); errors.As(err, &at) {
			line, _ = at.Position()
			problem = strings.TrimPrefix(strings.Join(at.Key(), ".")+": "+problem, ": ")
		}
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
	t.Turns, err = readChat(name, text, doc.Chat)
	return t, err
}

func lineOf(text []byte, near string) int {
	before, _, _ := bytes.Cut(text, []byte(near))
	return 1 + bytes.Count(before, []byte("\n"))
}

// A decoded file lacks the order of the turns of two lists, and the lines.
func readChat(name string, text []byte, chat any) (turns []turn, err error) {
	wrong := func(line int, hint, problem string, args ...any) ([]turn, error) {
		return nil, wrongTask(name, line, hint, problem, args...)
	}
	type written struct {
		role string
		line int
	}
	var heads []written
	var p unstable.Parser
	for p.Reset(text); p.NextExpression(); {
		e := p.Expression()
		key := e.Key()
		if e.Kind != unstable.ArrayTable || !key.Next() || string(key.Node().Data) != "chat" {
			continue
		}
		head := written{line: p.Shape(key.Node().Raw).Start.Line}
		if key.Next() {
			head.role = string(key.Node().Data)
		}
		if !key.Next() {
			heads = append(heads, head)
		}
	}
	list, one := chat.([]any)
	two, _ := chat.(map[string]any)
	heads = slices.DeleteFunc(heads, func(h written) bool { return one == (h.role != "") })
	for one && len(heads) < len(list) { // of one value
		heads = append(heads, written{})
	}
	if chat == nil {
		return wrong(0, "write [[chat.user]] and below it content = '''…'''", "it has no chat, so nothing is asked for")
	}
	for i, h := range heads {
		if !one {
			if list, _ = two[h.role].([]any); len(list) == 0 {
				return wrong(h.line, twoForms, "the chat mixes two forms")
			}
			two[h.role] = list[1:]
			list = list[:1]
		}
		table, _ := list[0].(map[string]any)
		content, isText := table["content"].(string)
		if one {
			h.role, _ = table["role"].(string)
			list = list[1:]
		}
		want := []model.Role{model.User, model.Assistant}[i%2]
		switch role := model.Role(h.role); {
		case role != model.User && role != model.Assistant:
			return wrong(h.line, "a turn is the user's or the assistant's", "turn %d has no role %q", i+1, h.role)
		case role != want:
			return wrong(h.line, "the chat starts with the user, and the two alternate", "turn %d is the %s's and must be the %s's", i+1, role, want)
		case !isText:
			return wrong(h.line, "add content = '''…'''", "the turn has no content, or its content is not a text")
		case strings.TrimSpace(content) == "":
			return wrong(h.line, "say what you want", "the content is empty")
		}
		turns = append(turns, turn{want, content})
	}
	for role, rest := range two {
		if others, isList := rest.([]any); (role == "user" || role == "assistant") && (!isList || len(others) > 0) {
			return wrong(lineOf(text, "chat"), twoForms, "chat.%s is not below the header of a turn", role)
		}
	}
	switch {
	case len(turns) == 0:
		return wrong(lineOf(text, "chat"), twoForms, "the chat is empty")
	case len(turns)%2 == 0:
		return wrong(heads[len(turns)-1].line, "end with what the user wants", "the chat ends with the assistant")
	}
	return turns, nil
}
