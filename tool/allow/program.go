package allow

import (
	"cmp"
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
	first    string // options that contain the pattern or script instead of the first operand
	text     string // options that take a value which is not a path
	refuse   string // refused options, which run programs or use files that the line does not show
	why      string // why they are refused; empty means the usual reason
	instead  string // what to do instead; empty means to leave the option out
	free     string // an expression for all arguments with which the program may run although it is not listed
	walls    bool   // the program is refused without walls
	skip     int    // number of operands before the command that the program runs
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

const gitRefuse = "O open-files-in-pager output ext-diff textconv filters unsafe-paths pathspec-from-file"

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
	{names: "find", text: "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -printf -perm -user -group -newermt",
		refuse: "-ok -okdir -execdir -files0-from -fprint -fprint0 -fprintf -fls", instead: "run the program on the names that find prints, in a call of its own",
		why: "it runs programs where no walls hold, waits for an answer, works in other directories, or uses files that the line does not show"},
	{names: "grep egrep fgrep", operands: script, first: "e f regexp file", text: "e regexp"},
	{names: "awk gawk mawk nawk", operands: script, first: "f file", text: "F v field-separator assign", walls: true},
	{names: "bash sh dash zsh ksh node perl ruby lua php python pypy", operands: interpreter},
	{names: "printf", operands: text, refuse: "v", why: "it sets a variable", instead: "write NAME=VALUE"},
	{names: "rg", operands: script, first: "e f regexp file files type-list", text: "e g r E regexp glob iglob replace encoding",
		refuse: "z pre hostname-bin search-zip"},
	{names: "sed gsed", operands: script, first: "e expression", text: "e expression",
		refuse: "i I f in-place file", why: "it changes files, or reads its script from one", instead: "change files with the edit tool, where you have it"},
	{names: "sort", text: "t k field-separator key", refuse: "o output compress-program files0-from"},
	{names: "stat", text: "c format printf"},
	{names: "tail", refuse: "f F follow retry", why: "it waits for more output and never ends", instead: "leave it out to print what the file contains now"},
	{names: "test [", refuse: "v R", why: "the shell can run a command in its operand"},
	{names: "wc du", refuse: "files0-from"},

	{names: "git-blame git-annotate", text: "L date", refuse: gitRefuse},
	{names: "git-grep", operands: script, first: "e f", text: "e", refuse: gitRefuse},
	{names: "git-log git-diff git-show git-shortlog git-reflog git-rev-list git-diff-tree git-diff-index git-diff-files git-commit git-tag git-stash " +
		"git-status git-ls-files git-ls-tree git-cat-file git-rev-parse git-branch git-describe git-name-rev git-merge-base git-for-each-ref git-show-ref " +
		"git-check-ignore git-count-objects git-version git-add git-rm git-mv git-restore git-checkout git-switch git-reset git-clean git-apply",
		text: "S G L grep author committer since until after before date m message", refuse: gitRefuse},

	{names: "command", operands: command, text: "v V", refuse: "p"},
	{names: "env", operands: command, text: "u unset",
		refuse: "S C a split-string chdir argv0 block-signal default-signal ignore-signal"},
	{names: "nice ionice stdbuf", operands: command, text: "n c p i o e adjustment class classdata pid input output error"},
	{names: "nohup setsid builtin time", operands: command},
	{names: "timeout chrt taskset", operands: command, text: "k s kill-after signal", skip: 1},
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
		return c.find(args)
	case name == "git":
		return c.git(args)
	case name == "rm" && !slices.Contains(c.Programs, name):
		p.refuse, p.why, p.instead = "r R d recursive dir", "it deletes what the line does not name", "name the files"
	case c.Walled && !c.ReadOnly && strings.HasSuffix(name, "sed"):
		p.why = ""
	}
	return c.known(name, p, args)
}

const lookupOptions = `(?: (?:[^- ]\S*|-(?:all|src|u|short|c|json|f|versions|deps)|--(?:all|json|long|depth=\d+|format-version(?:=1)?|no-deps|files)))*`

// What cargo runs is a matter of settings in the tree.
func (c *checker) isFree(p program, name string, args []arg) bool {
	if p.free == "" || strings.Contains(name, "/") || name == "cargo" && !c.Walled {
		return false
	}
	line := ""
	for _, a := range args {
		if !a.plain() && p.free != `.*` {
			return false
		}
		line += " " + a.text
	}
	return regexp.MustCompile(`^(?:` + p.free + `)$`).MatchString(strings.TrimPrefix(line, " "))
}

// The list must contain the name that the line uses.
func (c *checker) listed(name string) error {
	same := func(p string) bool { return p == name || p == "test" && name == "[" }
	if strings.Contains(name, "/") {
		same = func(p string) bool { return strings.Contains(p, "/") && path.Clean(p) == path.Join(c.at, name) }
	}
	if name == "rm" && c.Walled && !c.ReadOnly { // of files that it names
		return nil
	}
	if !slices.ContainsFunc(c.Programs, same) || c.outside(name) {
		return c.unlistedError(name)
	}
	return nil
}

// Such a program only needs its row of the table.
func (c *checker) known(name string, p program, args []arg) error {
	if c.Walled && p.why == "" {
		p.refuse = "" // what it hides passes
	}
	switch {
	case p.walls && !c.Walled:
		return refuse(name, "the line does not show what it does, and no walls hold here", "use grep, sed, cut, sort or the read tool")
	case p.operands == interpreter && !c.Walled && (len(args) == 0 || strings.HasPrefix(args[0].text, "-") && args[0].text != "-m"):
		return refuse(name+" with a program in its arguments or its input", "no walls hold here", "write the program into a file, and run "+name+" FILE")
	case p.operands == interpreter:
		return c.paths(args)
	}
	rest, scripts, err := c.parse(name, p, args)
	switch {
	case err != nil || p.operands == text:
		return err
	case p.operands == command:
		return c.wrapped(name, rest, p.skip)
	}
	for _, a := range scripts {
		if !c.Walled && strings.HasSuffix(name, "sed") && (a.glob || !plainSed.MatchString(a.text)) {
			return refuse("the "+name+" script "+a.text, "it can run programs or use other files, and no walls hold here", "use addresses with p, d and q, and s/…/…/ without brackets and backslashes")
		}
	}
	return c.paths(rest)
}

func (c *checker) paths(args []arg) error {
	for _, a := range args {
		if err := c.path(a); err != nil {
			return err
		}
	}
	return nil
}

// A long name may be abbreviated, as most programs allow.
func match(list, name string) bool {
	return slices.ContainsFunc(strings.Fields(list), func(full string) bool {
		return full == name || len(name) > 1 && len(full) > 1 && strings.HasPrefix(full, name)
	})
}

var digits = lazyregexp.New(`^[0-9]+$`)

// parse separates operands from patterns and scripts, and checks options.
func (c *checker) parse(name string, p program, args []arg) (operands, scripts []arg, err error) {
	wanted := p.operands == script // and the script is still to come
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case p.refuse != "" && c.couldBeOption(a):
			return nil, nil, leadingPattern(a)
		case a.text == "--":
			operands, args = append(operands, args...), nil
		case strings.HasPrefix(a.text, "-") && a.text != "-":
			option, value, takes, err := c.option(name, p, a)
			if err != nil {
				return nil, nil, err
			}
			if takes && value == "" && len(args) > 0 {
				value, args = args[0].text, args[1:]
			}
			if match(p.first, option) {
				if wanted = false; takes {
					scripts = append(scripts, arg{text: value})
				}
			}
		case p.operands == command: // the options that follow are not its own
			return append([]arg{a}, args...), nil, nil
		default:
			operands = append(operands, a)
		}
	}
	for i, a := range operands {
		if wanted && !digits.MatchString(a.text) { // which are of an option before
			return slices.Delete(operands, i, i+1), append(scripts, a), nil
		}
	}
	return operands, scripts, nil
}

func (c *checker) couldBeOption(a arg) bool {
	return !c.Walled && a.glob && strings.ContainsAny(a.text[:1], "*?[")
}

func leadingPattern(a arg) error {
	return refuse("the pattern "+a.text+" here", "it can match a file name that looks like an option", "write ./"+a.text+", or quote it if it does not stand for file names")
}

// a is -n, -rn, -n5, --name or --name=value. takes means that its last option takes a text, which is value if it is attached.
func (c *checker) option(name string, p program, a arg) (option, value string, takes bool, err error) {
	long, isLong := strings.CutPrefix(a.text, "--")
	options := strings.Split(strings.TrimLeft(a.text, "-"), "")
	if isLong {
		option, value, _ = strings.Cut(long, "=")
		options = []string{option}
	}
	for i, o := range options {
		if match(p.refuse, o) {
			return "", "", false, refuse(name+" "+a.text, cmp.Or(p.why, "this option runs programs or uses files that the line does not show"), cmp.Or(p.instead, "leave it out"))
		}
		if option = o; match(p.text, o) {
			if !isLong {
				value = strings.Join(options[i+1:], "")
			}
			return option, value, true, nil
		}
		if match(p.first, o) { // a file
			break
		}
	}
	if p.operands == text {
		return option, "", false, nil
	}
	return option, "", false, c.path(a)
}

// The command starts after skip of the program's operands.
func (c *checker) wrapped(name string, rest []arg, skip int) error {
	for name == "env" && len(rest) > 0 && (rest[0].text == "-" || strings.Contains(rest[0].text, "=")) {
		if rest[0].text != "-" && !c.Walled {
			return refuse("env "+rest[0].text, "it can change which programs and files the line uses, and no walls hold here", "use the program's options")
		}
		rest = rest[1:]
	}
	switch {
	case len(rest) <= skip:
		return nil
	case !rest[skip].plain(), skip > 0 && !rest[0].plain():
		return refuse(name+" without a program", "the line does not show what it runs", "write the name of the program after "+name)
	case rest[skip].text == "cd":
		return refuse(name+" cd", "hone could not check later paths", "write cd DIR as a separate command")
	}
	return c.run(rest[skip].text, rest[skip+1:])
}

func (c *checker) find(args []arg) error {
	p := row("find")
	listed := func(list, word string) bool { return slices.Contains(strings.Fields(list), word) }
	for i := 0; i < len(args); i++ {
		a, err := args[i], error(nil)
		switch {
		case c.couldBeOption(a):
			err = leadingPattern(a)
		case listed(p.refuse, a.text), a.text == "-exec" && !c.Walled:
			err = refuse("find "+a.text, p.why, p.instead)
		case a.text == "-exec": // which goes on to ; or {} +
			end := i + 1
			for end < len(args) && args[end].text != ";" && (args[end].text != "+" || args[end-1].text != "{}") {
				end++
			}
			err = c.wrapped("find -exec", args[i+1:min(end, len(args))], 0)
			i = end
		case a.text == "-delete":
			err = c.deletes("find -delete")
		case listed(p.text, a.text) && i+1 < len(args) && !args[i+1].glob:
			i++
		default:
			err = c.path(a)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
	if err := c.gitDeletes(name, args[1:]); err != nil {
		return err
	}
	return c.known("git "+name, p, args[1:])
}

// No undo restores what the user may have stashed.
func (c *checker) gitDeletes(name string, args []arg) error {
	has := func(word string) bool { return slices.ContainsFunc(args, func(a arg) bool { return a.text == word }) }
	switch {
	case name == "stash" && (has("drop") || has("clear")):
		return refuse("git stash drop and clear", "the user may have stashed it", "leave the stash, or use git stash pop")
	case name == "clean", name == "rm" && !has("--cached"):
		return c.deletes("git " + name)
	}
	return nil
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
