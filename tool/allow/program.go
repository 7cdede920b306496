package allow

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// program is a row of the table, which describes how programs read their
// arguments. Options are written without dashes, separated by spaces.
type program struct {
	names    string
	operands operands
	text     string // options that take a value which is not a path
	refuse   string // options that are refused without walls: they run programs, use files that the line does not show, or say what the operands are
	always   bool   // they are refused where walls hold, too
	why      string // why they are refused; empty means the usual reason
	instead  string // what to do instead; empty means to leave the option out
	free     string // an expression for all arguments with which the program may run although it is not listed
	walls    bool   // the program is refused without walls
	words    bool   // options are whole words, as those of find
}

// operands is the kind of a program's operands.
type operands int

const (
	paths       operands = iota // each may be a path
	script                      // the first is a pattern or a script, the others may be paths
	text                        // none is a path
	command                     // they are a command; its program must be listed too
	interpreter                 // the first is a file with a program, or they hide one
)

const gitRefuse = "O open-files-in-pager output ext-diff textconv filters unsafe-paths pathspec-from-file help"

// programs is the table. Arguments that a program's row does not describe may be
// paths, and so may all arguments of a program without a row.
var programs = []program{
	{names: "true false : exit break continue", free: `.*`},
	{names: "set", free: `(?:(?:-[eux]*o?|pipefail|errexit|nounset|xtrace) ?)*`},
	{names: "read source . shift unset wait", free: `.*`, walls: true},
	// What is known of dependencies.
	{names: "go", free: `(?:doc|list -m)` + lookupOptions},
	{names: "npm", free: `ls` + lookupOptions},
	{names: "pip", free: `show` + lookupOptions},
	{names: "cargo", free: `metadata --offline` + lookupOptions},

	{names: "tar gtar bsdtar rsync split zip curl wget", walls: true},
	{names: "cut", text: "d f b c delimiter fields bytes characters output-delimiter"},
	{names: "date", text: "d date"},
	{names: "echo expr basename dirname seq sleep which type tr kill", operands: text},
	{names: "find", words: true, text: "name iname path ipath wholename iwholename regex iregex lname ilname printf perm user group newermt",
		refuse: "ok okdir exec execdir files0-from fprint fprint0 fprintf fls", instead: "run the program on the names that find prints, in a call of its own",
		why: "it runs programs where no walls hold, waits for an answer, works in other directories, or uses files that the line does not show"},
	{names: "grep egrep fgrep", operands: script, text: "e regexp A B C m", refuse: "e f regexp file"},
	{names: "awk gawk mawk nawk", operands: script, text: "F v field-separator assign", walls: true},
	{names: "bash sh dash zsh ksh node perl ruby lua php python pypy", operands: interpreter},
	{names: "printf", operands: text, refuse: "v", why: "it sets a variable", instead: "write NAME=VALUE"},
	{names: "rg", operands: script, text: "e g r E A B C m regexp glob iglob replace encoding",
		refuse: "e f regexp file files z pre hostname-bin search-zip"},
	{names: "rm", refuse: "r R d recursive dir", always: true, why: "it deletes what the line does not name", instead: "name the files"},
	{names: "sed gsed", operands: script, text: "e expression",
		refuse: "i I e f in-place expression file", why: "no walls hold here, and hone reads only one script, the first operand", instead: "write one script, with ; between commands, and change files with the edit tool"},
	{names: "sort", text: "t k field-separator key", refuse: "o output compress-program files0-from"},
	{names: "stat", text: "c format printf"},
	{names: "tail", refuse: "f F follow retry", always: true, why: "it waits for more output and never ends", instead: "leave it out to print what the file contains now"},
	{names: "test [", refuse: "v R", why: "the shell can run a command in its operand"},
	{names: "wc du", refuse: "files0-from"},

	{names: "git-blame git-annotate", text: "L date", refuse: gitRefuse},
	{names: "git-grep", operands: script, text: "e A B C m", refuse: "e f " + gitRefuse},
	{names: "git-log git-diff git-show git-shortlog git-reflog git-rev-list git-diff-tree git-diff-index git-diff-files git-commit git-tag git-stash " +
		"git-status git-ls-files git-ls-tree git-cat-file git-rev-parse git-branch git-describe git-name-rev git-merge-base git-for-each-ref git-show-ref " +
		"git-check-ignore git-count-objects git-version git-add git-rm git-mv git-restore git-checkout git-switch git-reset git-clean git-apply",
		text: "S G L grep author committer since until after before date m message", refuse: gitRefuse},

	{names: "command", operands: command, text: "v V", refuse: "p"},
	{names: "env", operands: command, text: "u unset",
		refuse: "S C a split-string chdir argv0 block-signal default-signal ignore-signal"},
	{names: "nice ionice stdbuf", operands: command, text: "n c p i o e adjustment class classdata pid input output error"},
	{names: "nohup setsid builtin time", operands: command},
	{names: "timeout", operands: command, text: "k s kill-after signal"},
	{names: "xargs", operands: command, text: "I replace d E delimiter eof a n L P s arg-file max-args max-lines max-procs max-chars", walls: true},
	{names: "eval exec alias trap enable mapfile getopts declare sudo su script ssh crontab at less more man vi vim ed nano emacs top", walls: true},
}

// The directory of the program's path and a version at the end of its name are ignored.
func row(name string) program {
	for _, name := range []string{name, strings.TrimRight(path.Base(name), "0123456789.")} {
		for _, p := range programs {
			if slices.Contains(strings.Fields(p.names), name) {
				return p
			}
		}
	}
	return program{}
}

func (c *checker) run(name string, args []arg) error {
	p := row(name)
	if err := c.listed(name); err != nil && !c.isFree(p, name, args) {
		return err
	}
	switch {
	case name == "find":
		return c.find(p, args)
	case name == "git":
		return c.git(args)
	case name == "rm" && slices.Contains(c.Programs, name):
		p.refuse = ""
	}
	return c.known(name, p, args)
}

const lookupOptions = `(?: (?:[^- ]\S*|-(?:all|src|u|short|c|json|f|versions|deps)|--(?:all|json|long|depth=\d+|format-version(?:=1)?|no-deps|files)))*`

// What cargo runs is a matter of settings in the tree.
func (c *checker) isFree(p program, name string, args []arg) bool {
	if p.free == "" || strings.Contains(name, "/") || name == "cargo" && !c.Walled {
		return false
	}
	var line []string
	for _, a := range args {
		line = append(line, a.text)
	}
	return regexp.MustCompile(`^(?:` + p.free + `)$`).MatchString(strings.Join(line, " "))
}

// The list must contain the name that the line uses.
func (c *checker) listed(name string) error {
	same := func(p string) bool { return p == name || p == "test" && name == "[" }
	if strings.Contains(name, "/") {
		same = func(p string) bool { return strings.Contains(p, "/") && path.Clean(p) == path.Join(c.at, name) }
	}
	hint := ""
	switch {
	case slices.ContainsFunc(c.Programs, same) && !c.outside(name), name == "rm" && c.Walled && !c.ReadOnly: // of files that it names
		return nil
	case name == "rm":
		return refuse(name, "it is not listed, and no tool deletes files", deletion)
	case slices.Contains(c.Programs, path.Base(name)):
		hint = "; run programs by their name in the list, not by another path"
	case strings.Contains(name, "/"):
		hint = "; the project's own programs are not run, unless they are named here"
	}
	return fmt.Errorf("command not allowed: '%.200s' (allowed: %s)%s", name, strings.Join(c.Programs, ", "), hint)
}

// Such a program only needs its row of the table.
func (c *checker) known(name string, p program, args []arg) error {
	if c.Walled && !p.always {
		p.refuse = ""
	}
	leading := func(a arg) bool { return a.glob && strings.ContainsAny(a.text[:1], "*?[") }
	switch {
	case p.refuse != "" && !c.Walled && slices.ContainsFunc(args, leading):
		return refuse("a pattern that begins with *, ? or [ here", "it can match a file name that looks like an option", "write ./ before it, or quote it if it does not stand for file names")
	case p.walls && !c.Walled:
		return refuse(name, "the line does not show what it does, and no walls hold here", "use grep, sed, cut, sort or the read tool")
	case p.operands == interpreter && !c.Walled && (len(args) == 0 || strings.HasPrefix(args[0].text, "-") && args[0].text != "-m"):
		return refuse(name+" with a program in its arguments or its input", "no walls hold here", "write the program into a file, and run "+name+" FILE")
	}
	rest, err := c.parse(name, p, args)
	switch {
	case err != nil || p.operands == text || len(rest) == 0:
		return err
	case p.operands == command:
		return c.wrapped(name, rest)
	case p.operands == script:
		if sed := strings.HasSuffix(name, "sed"); sed && !c.Walled && (rest[0].glob || !plainSed.MatchString(rest[0].text)) {
			return refuse("the "+name+" script "+rest[0].text, "it can run programs or use other files, and no walls hold here", "use addresses with p, d and q, and s/…/…/ without brackets and backslashes")
		}
		rest = rest[1:]
	}
	for _, a := range rest {
		if err := c.path(a); err != nil {
			return err
		}
	}
	return nil
}

// A long name may be abbreviated, as most programs allow.
func (p program) has(list, name string) bool {
	return slices.ContainsFunc(strings.Fields(list), func(full string) bool {
		return full == name || !p.words && len(name) > 1 && len(full) > 1 && strings.HasPrefix(full, name)
	})
}

// parse returns the operands, and checks options: -n, -rn, -n5, --name and --name=value.
func (c *checker) parse(name string, p program, args []arg) (operands []arg, err error) {
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a.text == "--":
			return append(operands, args...), nil
		case strings.HasPrefix(a.text, "-") && a.text != "-" && p.operands != interpreter:
		case p.operands == command: // the options that follow are not its own
			return append([]arg{a}, args...), nil
		default:
			operands = append(operands, a)
			continue
		}
		option, _, attached := strings.Cut(strings.TrimLeft(a.text, "-"), "=")
		options := []string{option}
		if !strings.HasPrefix(a.text, "--") && !p.words {
			options = strings.Split(a.text[1:], "")
		}
		isPath := p.operands != text
		for i, o := range options {
			if p.has(p.refuse, o) {
				return nil, refuse(name+" "+a.text, cmp.Or(p.why, "hone does not check what this option does, and no walls hold here"), cmp.Or(p.instead, "leave it out"))
			}
			if p.has(p.text, o) {
				if isPath = false; i == len(options)-1 && !attached && len(args) > 0 {
					args = args[1:]
				}
				break
			}
		}
		if isPath {
			if err := c.path(a); err != nil {
				return nil, err
			}
		}
	}
	return operands, nil
}

var amount = lazyregexp.New(`^[0-9.]+[smhd]?$`)

// The command starts after the variables of env and the time limit of timeout.
func (c *checker) wrapped(name string, rest []arg) error {
	for len(rest) > 0 && (rest[0].text == "-" || strings.Contains(rest[0].text, "=") || amount.MatchString(rest[0].text)) {
		if strings.Contains(rest[0].text, "=") && !c.Walled {
			return refuse(name+" "+rest[0].text, "it can change which programs and files the line uses, and no walls hold here", "use the program's options")
		}
		rest = rest[1:]
	}
	switch {
	case len(rest) == 0:
		return nil
	case !rest[0].plain():
		return refuse(name+" without a program", "the line does not show what it runs", "write the name of the program after "+name)
	case rest[0].text == "cd":
		return refuse(name+" cd", "hone could not check later paths", "write cd DIR as a separate command")
	}
	return c.run(rest[0].text, rest[1:])
}

// The command of -exec goes on to ; or {} +.
func (c *checker) find(p program, args []arg) error {
	var rest []arg
	for i := 0; i < len(args); i++ {
		var err error
		switch {
		case args[i].text == "-exec" && c.Walled:
			end := i + 1
			for end < len(args) && args[end].text != ";" && (args[end].text != "+" || args[end-1].text != "{}") {
				end++
			}
			err = c.wrapped("find -exec", args[i+1:min(end, len(args))])
			i = end
		case args[i].text == "-delete":
			err = c.deletes("find -delete")
		default:
			rest = append(rest, args[i])
		}
		if err != nil {
			return err
		}
	}
	return c.known("find", p, rest)
}

// Commands that are not in the table are refused, because an alias can run any program.
func (c *checker) git(args []arg) error {
	defer func(at string) { c.at = at }(c.at)
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		switch {
		case args[0].text == "--no-pager" || args[0].text == "--version":
			args = args[1:]
		case args[0].text == "-C" && len(args) > 1:
			if err := c.enter(args[1]); err != nil {
				return err
			}
			args = args[2:]
		default:
			return refuse("git "+args[0].text, "options before the command can run programs, or lead to another repository", "write git COMMAND, or git -C DIR COMMAND")
		}
	}
	if len(args) == 0 {
		return nil
	}
	name := args[0].text
	p := row("git-" + name)
	if p.names == "" {
		return refuse("git "+name, "hone cannot check that it stays in this repository", "use status, diff, log, show, add, commit or a similar command")
	}
	has := func(word string) bool { return slices.ContainsFunc(args, func(a arg) bool { return a.text == word }) }
	switch {
	case name == "stash" && (has("drop") || has("clear")), name == "reflog" && (has("delete") || has("expire") || has("drop")): // which no undo restores
		return refuse("git stash drop and clear, and git reflog delete, expire and drop", "the user may have stashed it", "leave the stash, or use git stash pop")
	case name == "clean", name == "rm" && !has("--cached"):
		if err := c.deletes("git " + name); err != nil {
			return err
		}
	}
	return c.known("git "+name, p, args[1:])
}

func (c *checker) deletes(what string) error {
	if !c.ReadOnly && (slices.Contains(c.Programs, "rm") || what == "git rm" && c.Walled) {
		return nil
	}
	return refuse(what, "it deletes files, and rm is not listed", deletion)
}

// plainSed matches scripts that print lines, or change them without patterns that each sed
// reads in its own way.
var plainSed = lazyregexp.New(`^(?:` + sedAddress + `(?:,(?:\+?` + sedAddress + `))?[ ]*!?(?:[pd=]|q[0-9]*|s/[^][\\/\n]+/[^\\/\n]*/[gpiI0-9]*|s\|[^][\\|\n]+\|[^\\|\n]*\|[gpiI0-9]*)(?:; *|$))+$`)

const sedAddress = `(?:[0-9]+|\$|/[^][\\/\n]+/)?`
