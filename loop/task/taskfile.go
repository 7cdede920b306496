package task

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"hone/internal/lazyregexp"

	"github.com/pelletier/go-toml/v2"

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

// plainTask returns the task of a text without a file.
func plainTask(text string) taskFile { return taskFile{Turns: []turn{{model.User, text}}} }

// Size returns the length of the turns' texts in bytes.
func (t taskFile) Size() int {
	n := 0
	for _, turn := range t.Turns {
		n += len(turn.Text)
	}
	return n
}

// taskError describes what is wrong with a task file, and where.
type taskError struct {
	File    string
	Line    int // counted from 1; 0 for the whole file
	Problem string
	Hint    string // what to write instead
}

// Error returns one line: the place, the problem and what to do.
func (e *taskError) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	return fmt.Sprintf("%s: %s; %s", at, e.Problem, e.Hint)
}

// loadTask reads a task file of a tree. The error is a [*taskError] if the file exists and
// is invalid, and wraps [fs.ErrNotExist] if it does not exist.
func loadTask(tree *workspace.Tree, name string) (taskFile, error) {
	if path.Ext(name) != ".toml" {
		return taskFile{}, &taskError{File: name, Problem: "a task file's name ends in .toml", Hint: "rename it, or give the task as text"}
	}
	text, _, err := tree.Read(name)
	if err != nil {
		return taskFile{}, fmt.Errorf("task file: %w", err)
	}
	return parseTask(name, text)
}

// parseTask parses the text of a task file in CodeScribe's form: [[chat.user]] and
// [[chat.assistant]] tables in the order of the conversation, or [[chat]] tables
// with a role. Long contents are between three single quotes. [tools] bash and
// [check] command and judge are optional; other keys are ignored. The error is a [*taskError].
func parseTask(name string, text []byte) (taskFile, error) {
	var tree map[string]any
	if err := checkEncoding(name, text); err != nil {
		return taskFile{}, err
	}
	if err := toml.Unmarshal(text, &tree); err != nil {
		return taskFile{}, syntaxError(name, err)
	}
	r := readTask(name, text)
	turns, err := r.chat(tree)
	if err != nil {
		return taskFile{}, err
	}
	allow, err := r.allow(tree["tools"])
	if err != nil {
		return taskFile{}, err
	}
	command, judge, err := r.check(tree["check"])
	return taskFile{File: name, Turns: turns, Allow: allow, Check: command, Judge: judge}, err
}

// The TOML library's own errors would not tell the user what to do about it.
func checkEncoding(name string, text []byte) error {
	if strings.HasPrefix(string(text), "\ufeff") {
		return &taskError{name, 1, "it starts with a byte order mark", "save it as UTF-8 without one"}
	}
	line := 1
	for l := range strings.Lines(string(text)) {
		if !utf8.ValidString(l) {
			return &taskError{name, line, "it is not UTF-8", "save it as UTF-8"}
		}
		line++
	}
	return nil
}

func syntaxError(name string, err error) error {
	e := &taskError{File: name, Problem: strings.TrimPrefix(err.Error(), "toml: "), Hint: "see toml.io"}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		e.Line, _ = at.Position()
	}
	return e
}

func (r *taskReader) wrong(line int, hint, problem string, args ...any) error {
	return &taskError{r.name, line, fmt.Sprintf(problem, args...), hint}
}

const twoForms = "start each turn with [[chat.user]] or [[chat.assistant]], and give it a content"

func (r *taskReader) chat(tree map[string]any) ([]turn, error) {
	_, there := tree["chat"]
	switch {
	case !there:
		return nil, r.wrong(0, "write [[chat.user]] and below it content = '''…'''", "it has no chat, so nothing is asked for")
	case r.fault != nil:
		return nil, r.fault
	case len(r.turns) == 0:
		return nil, r.wrong(r.line("chat"), twoForms, "the chat is empty")
	}
	var turns []turn
	for i, t := range r.turns {
		turn, err := r.turn(t)
		if err != nil {
			return nil, err
		}
		if want := []model.Role{model.User, model.Assistant}[i%2]; turn.Role != want {
			return nil, r.wrong(t.line, "the chat starts with the user, and the two alternate", "turn %d is the %s's and must be the %s's", i+1, turn.Role, want)
		}
		turns = append(turns, turn)
	}
	if len(turns)%2 == 0 {
		return nil, r.wrong(r.turns[len(turns)-1].line, "end with what the user wants", "the chat ends with the assistant")
	}
	return turns, nil
}

func (r *taskReader) turn(t writtenTurn) (turn, error) {
	role := model.Role(t.role)
	switch {
	case t.role == "":
		return turn{}, r.wrong(t.line, `add role = "user" or role = "assistant"`, "the turn has no role")
	case role != model.User && role != model.Assistant:
		return turn{}, r.wrong(t.line, `a turn is the user's or the assistant's`, "there is no role %q", t.role)
	case t.content == nil:
		return turn{}, r.wrong(t.line, "add content = '''…'''", "the turn has no content, or its content is not a text")
	case strings.HasPrefix(t.raw, `"""`):
		return turn{}, r.wrong(t.contentLine, "put it between ''' and '''", `the content is between """, which changes backslashes`)
	case strings.TrimSpace(*t.content) == "":
		return turn{}, r.wrong(t.contentLine, "say what you want", "the content is empty")
	}
	return turn{role, *t.content}, nil
}

// bareName matches a program's name without path, options or quotes.
var bareName = lazyregexp.New(`^[A-Za-z0-9_.+-]+$`)

func (r *taskReader) allow(tools any) ([]string, error) {
	const hint = `name programs, as in bash = ["python3", "make"]`
	line := r.line("tools", "bash")
	table, ok := tools.(map[string]any)
	if !ok && tools != nil {
		return nil, r.wrong(r.line("tools"), hint, "tools is not a table")
	}
	value, there := table["bash"]
	list, ok := value.([]any)
	if there && !ok {
		return nil, r.wrong(line, hint, "bash is not a list")
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

// judge is how the check treats what judges the work.
func (r *taskReader) check(section any) (command, judge string, err error) {
	const hint = `write command = "make test"`
	table, ok := section.(map[string]any)
	if !ok && section != nil {
		return "", "", r.wrong(r.line("check"), hint, "check is not a table")
	}
	value, there := table["command"]
	command, ok = value.(string)
	if there && (!ok || strings.TrimSpace(command) == "") {
		return "", "", r.wrong(r.line("check", "command"), hint, "command is not a command line")
	}
	value, there = table["judge"]
	judge, _ = value.(string)
	if there && judge != "ask" && judge != "keep" && judge != "free" {
		return "", "", r.wrong(r.line("check", "judge"), `write judge = "ask", "keep" or "free"`, "judge is none of the three words")
	}
	return command, judge, nil
}
