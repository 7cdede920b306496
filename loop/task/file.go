package task

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"hone/model"
	"hone/workspace"
)

// Task is what is asked for.
type Task struct {
	// File is the task file, relative to the tree's root; empty where the task
	// was given as plain text.
	File string `json:"file,omitempty"`
	// Turns are the conversation that the task is: they begin and end with the
	// user and alternate.
	Turns []Turn `json:"turns"`
	// Allow are programs beside hone's own list that commands may run.
	Allow []string `json:"allow,omitempty"`
	// Check is the command that has the last word; empty where none is named.
	// It counts as it stands when the run starts (ruling S3).
	Check string `json:"check,omitempty"`
}

// Turn is one message of a task.
type Turn struct {
	Role model.Role `json:"role"`
	Text string     `json:"text"`
}

// Plain is the task that a text is by itself.
func Plain(text string) Task { return Task{Turns: []Turn{{model.User, text}}} }

// FileError says what is wrong with a task file, and where.
type FileError struct {
	File    string
	Line    int // counted from 1; 0 where it concerns the whole file
	Problem string
	Hint    string // what to write instead
}

// Error is one line: place, problem and what to do.
func (e *FileError) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return fmt.Sprintf("%s: %s; %s", at, e.Problem, e.Hint)
}

// Load reads a task file of a tree. The error is a [*FileError] where the file
// is there and wrong.
func Load(tree *workspace.Tree, name string) (Task, error) {
	if path.Ext(name) != ".toml" {
		return Task{}, &FileError{File: name, Problem: "a task file's name ends in .toml", Hint: "rename it, or give the task as text"}
	}
	text, _, err := tree.Read(name)
	if err != nil {
		return Task{}, fmt.Errorf("task file: %w", err)
	}
	return Parse(name, text)
}

// Parse reads a task file's text. It takes CodeScribe's files: turns stand as
// [[chat.user]] and [[chat.assistant]] tables in their order, or as [[chat]]
// tables with a role; long contents stand between three single quotes;
// [tools] bash and [check] command are optional, and all else is passed over.
// The error is a [*FileError].
func Parse(name string, text []byte) (Task, error) {
	var tree map[string]any
	if err := plain(name, text); err != nil {
		return Task{}, err
	}
	if err := toml.Unmarshal(text, &tree); err != nil {
		return Task{}, syntaxError(name, err)
	}
	r := read(name, text)
	turns, err := r.chat(tree)
	if err != nil {
		return Task{}, err
	}
	allow, err := r.allow(tree["tools"])
	if err != nil {
		return Task{}, err
	}
	command, err := r.check(tree["check"])
	return Task{File: name, Turns: turns, Allow: allow, Check: command}, err
}

// plain refuses what no TOML file can begin with or hold, in words that say
// how it comes about.
func plain(name string, text []byte) error {
	if strings.HasPrefix(string(text), "\ufeff") {
		return &FileError{name, 1, "it begins with a byte order mark", "save it as UTF-8 without one"}
	}
	line := 1
	for l := range strings.Lines(string(text)) {
		if !utf8.ValidString(l) {
			return &FileError{name, line, "it is not UTF-8", "save it as UTF-8"}
		}
		line++
	}
	return nil
}

// syntaxError words what the TOML library says.
func syntaxError(name string, err error) error {
	e := &FileError{File: name, Problem: strings.TrimPrefix(err.Error(), "toml: "), Hint: "see toml.io"}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		e.Line, _ = at.Position()
	}
	return e
}

func (r *reader) wrong(line int, hint, problem string, args ...any) error {
	return &FileError{r.name, line, fmt.Sprintf(problem, args...), hint}
}

const twoForms = "begin each turn with [[chat.user]] or [[chat.assistant]], and give it a content"

// chat are the task's turns, if they are a conversation that can be sent.
func (r *reader) chat(tree map[string]any) ([]Turn, error) {
	_, there := tree["chat"]
	switch {
	case !there:
		return nil, r.wrong(0, "write [[chat.user]] and below it content = '''…'''", "it has no chat, so nothing is asked for")
	case r.fault != nil:
		return nil, r.fault
	case len(r.turns) == 0:
		return nil, r.wrong(r.line("chat"), twoForms, "the chat is empty")
	}
	var turns []Turn
	for i, t := range r.turns {
		turn, err := r.turn(t)
		if err != nil {
			return nil, err
		}
		if want := []model.Role{model.User, model.Assistant}[i%2]; turn.Role != want {
			return nil, r.wrong(t.line, "the chat begins with the user, and the two alternate", "turn %d is the %s's and must be the %s's", i+1, turn.Role, want)
		}
		turns = append(turns, turn)
	}
	if len(turns)%2 == 0 {
		return nil, r.wrong(r.turns[len(turns)-1].line, "end with what the user wants", "the chat ends with the assistant")
	}
	return turns, nil
}

// turn is one turn, if it can be sent.
func (r *reader) turn(t turn) (Turn, error) {
	role := model.Role(t.role)
	switch {
	case t.role == "":
		return Turn{}, r.wrong(t.line, `add role = "user" or role = "assistant"`, "the turn has no role")
	case role != model.User && role != model.Assistant:
		return Turn{}, r.wrong(t.line, `a turn is the user's or the assistant's`, "there is no role %q", t.role)
	case t.content == nil:
		return Turn{}, r.wrong(t.line, "add content = '''…'''", "the turn has no content, or one that is no text")
	case strings.HasPrefix(t.raw, `"""`):
		return Turn{}, r.wrong(t.contentLine, "put it between ''' and '''", `the content stands between """, which changes backslashes`)
	case strings.TrimSpace(*t.content) == "":
		return Turn{}, r.wrong(t.contentLine, "say what is wanted", "the content is empty")
	}
	return Turn{role, *t.content}, nil
}

// bareName is how a program is named: without a path, options or quotes.
var bareName = regexp.MustCompile(`^[A-Za-z0-9_.+-]+$`)

// allow is the list that [tools] bash adds.
func (r *reader) allow(tools any) ([]string, error) {
	const hint = `name programs, as in bash = ["python3", "make"]`
	line := r.line("tools", "bash")
	table, ok := tools.(map[string]any)
	if !ok && tools != nil {
		return nil, r.wrong(r.line("tools"), hint, "tools is no table")
	}
	value, there := table["bash"]
	list, ok := value.([]any)
	if there && !ok {
		return nil, r.wrong(line, hint, "bash is no list")
	}
	var names []string
	for _, v := range list {
		name, ok := v.(string)
		if !ok || !bareName.MatchString(name) {
			return nil, r.wrong(line, hint, "%#v is not the bare name of a program", v)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// check is the command of [check].
func (r *reader) check(section any) (string, error) {
	const hint = `write command = "make test"`
	table, ok := section.(map[string]any)
	if !ok && section != nil {
		return "", r.wrong(r.line("check"), hint, "check is no table")
	}
	value, there := table["command"]
	command, ok := value.(string)
	if there && (!ok || strings.TrimSpace(command) == "") {
		return "", r.wrong(r.line("check", "command"), hint, "command is no command line")
	}
	return command, nil
}
