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
	values   string // other options that take a value
	writes   string // options whose value is a file that the program writes; also in values
	refuse   string // refused options, which run programs or use files that the line does not show
	why      string // why they are refused; empty means the usual reason
	instead  string // what to do instead; empty means to leave the option out
	free     string // an expression for all arguments with which the program may run although it is not listed
	walls    bool   // the program is refused without walls
	globs    bool   // a pattern may match a file name that looks like an option
	skip     int    // number of operands before the command that the program runs
}

// operands is the kind of a program's operands.
type operands int

const (
	paths       operands = iota // each may be a path
	script                      // the first is a pattern or a script, the others may be paths
	text                        // none is a path
	anything                    // none is a path, and no option is checked
	command                     // they are a command; its program must be listed too
	interpreter                 // the first is a file with a program, unless an option in text contains one
	refused                     // the program is always refused
)

const gitRefuse = "ext-diff textconv filters open-files-in-pager unsafe-paths pathspec-from-file "

// programs is the table. Arguments that a program's row does not describe may be
// paths, and so may all arguments of a program without a row.
var programs = []program{
	{names: "true false : exit break continue", free: `.*`},
	{names: "set", free: `(?:(?:-[eux]*o?|pipefail|errexit|nounset|xtrace) ?)*`},
	{names: "read source . shift unset wait", free: `.*`, walls: true},
	// What is known of dependencies.
	{names: "go", free: `(?:doc|list -m)` + lookupOptions, globs: true},
	{names: "npm", free: `ls` + lookupOptions, globs: true},
	{names: "pip", free: `show` + lookupOptions, globs: true},
	{names: "cargo", free: `metadata --offline` + lookupOptions, globs: true},

	{names: "tar gtar bsdtar rsync split zip", walls: true},
	{names: "cut", text: "d f b c delimiter fields bytes characters output-delimiter", globs: true},
	{names: "curl", text: "H A X u header request user-agent", values: "o output", writes: "o output", refuse: "K config"},
	{names: "date", text: "d date"},
	{names: "echo expr basename dirname seq sleep which type tr kill", operands: anything},
	{names: "find", text: "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -printf -perm -user -group -newermt",
		refuse: "-ok -okdir -execdir -files0-from -fprint -fprint0 -fprintf -fls", instead: "use -exec, and redirect what find prints",
		why: "it waits for an answer, works in other directories, or uses files that the line does not show"},
	{names: "grep egrep fgrep", operands: script, first: "e f regexp file", text: "e regexp", globs: true,
		values: "f m A B C d D file max-count after-context before-context context binary-files devices directories"},
	{names: "awk gawk mawk nawk", operands: script, first: "f file", text: "F v field-separator assign", values: "f file", walls: true},
	{names: "bash sh dash zsh ksh", operands: interpreter, text: "c s o O rcfile init-file"},
	{names: "node perl ruby lua php", operands: interpreter, text: "e E n p r eval print"},
	{names: "python pypy", operands: interpreter, text: "c", values: "m W X"},
	{names: "printf", operands: text, refuse: "v", why: "it sets a variable", instead: "write NAME=VALUE"},
	{names: "rg", operands: script, first: "e f regexp file files type-list", text: "e g r E regexp glob iglob replace encoding",
		values: "f m A B C M j t T d file max-count after-context before-context context max-columns max-depth threads type type-not ignore-file sort sortr color colors",
		refuse: "z pre hostname-bin search-zip"},
	{names: "sed gsed", operands: script, first: "e expression", text: "e expression", values: "l line-length",
		refuse: "i I f in-place file", why: "it changes files, or reads its script from one", instead: "change files with the edit tool, where you have it"},
	{names: "sort", text: "t k field-separator key", values: "o S T output temporary-directory", writes: "o output", refuse: "compress-program files0-from"},
	{names: "stat", text: "c format printf", globs: true},
	{names: "tail", values: "c n s bytes lines pid sleep-interval", globs: true,
		refuse: "f F follow retry", why: "it waits for more output and never ends", instead: "leave it out to print what the file contains now"},
	{names: "test [", refuse: "v R", why: "the shell can run a command in its operand", globs: true},
	{names: "wc du", refuse: "files0-from", globs: true},
	{names: "wget", values: "O output-document", writes: "O output-document", refuse: "e i execute use-askpass input-file config"},

	{names: "git-log git-diff git-show git-shortlog git-reflog git-rev-list git-diff-tree git-diff-index git-diff-files",
		text: "S G L grep author committer since until after before date", values: "O output", writes: "output", refuse: gitRefuse},
	{names: "git-blame git-annotate", text: "L date", refuse: gitRefuse},
	{names: "git-grep", operands: script, first: "e f", text: "e", values: "f m A B C", refuse: gitRefuse + "O"},
	{names: "git-commit git-tag git-stash", text: "m message author date", values: "F C t file", refuse: gitRefuse, globs: true},
	{names: "git-status git-ls-files git-ls-tree git-cat-file git-rev-parse git-branch git-describe git-name-rev git-merge-base git-for-each-ref git-show-ref " +
		"git-check-ignore git-count-objects git-config git-version git-add git-rm git-mv git-restore git-checkout git-switch git-reset git-clean git-apply",
		refuse: gitRefuse, globs: true},

	{names: "command", operands: command, text: "v V", refuse: "p"},
	{names: "env", operands: command, text: "u unset",
		refuse: "S C a split-string chdir argv0 block-signal default-signal ignore-signal"},
	{names: "nice ionice stdbuf", operands: command, values: "n c p i o e adjustment class classdata pid input output error"},
	{names: "nohup setsid builtin time", operands: command},
	{names: "timeout chrt taskset", operands: command, values: "k s kill-after signal", skip: 1},
	{names: "xargs", operands: command, text: "I replace d E delimiter eof", values: "a n L P s arg-file max-args max-lines max-procs max-chars", walls: true},
	{names: "eval exec alias unalias trap enable hash shopt mapfile readarray getopts declare typeset local readonly let " +
		"sudo su doas pkexec chroot unshare nsenter watch script flock screen tmux strace gdb busybox toybox ssh crontab at batch systemd-run " +
		"less more most man info vi vim nvim view ex ed nano emacs top htop", operands: refused},
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
	return program{globs: true}
}

func (c *checker) run(name string, args []arg) error {
	if name == "cd" {
		return c.cd(args)
	}
	p := row(name)
	if err := c.listed(name); err != nil && !c.isFree(p, name, args) {
		return err
	}
	switch name {
	case "find":
		return c.find(args)
	case "git":
		return c.git(args)
	}
	if name == "rm" && !slices.Contains(c.Programs, name) {
		p.refuse, p.why, p.instead = "r R d recursive dir", "it deletes what the line does not name", "name the files"
	}
	if c.Walled && !c.ReadOnly && strings.HasSuffix(name, "sed") {
		p.refuse, p.why = "I f file", ""
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
	switch {
	case name == "rm" && c.Walled && !c.ReadOnly:
		return nil // of files that it names
	case !slices.ContainsFunc(c.Programs, same) || c.outside(name):
		return c.unlistedError(name)
	case strings.Contains(name, "/") && c.moves > 0 && c.at == "":
		return refuse(name+" after cd", "the listed path is relative to the working directory", "run it before the cd, or in a call of its own")
	}
	return nil
}

// Such a program only needs its row of the table.
func (c *checker) known(name string, p program, args []arg) error {
	switch {
	case p.operands == anything:
		return nil
	case p.operands == refused:
		return refuse(name, "hone cannot check what it runs or sets, or it does not end by itself", "run those programs directly, or use the read, grep, edit and write tools")
	case p.walls && !c.Walled:
		return refuse(name, "the line does not show what it does, and no walls hold here", "use grep, sed, cut, sort, find -exec PROGRAM {} + or the read tool")
	}
	rest, options, err := c.parse(name, p, args)
	switch {
	case err != nil || p.operands == text:
		return err
	case p.operands == command:
		return c.wrapped(name, rest, p.skip)
	case p.operands == interpreter && !c.Walled:
		hidden := len(args) == 0 || len(rest) > 0 && rest[0].text == "-"
		for option := range options {
			hidden = hidden || match(p.text, option) != ""
		}
		if hidden {
			return refuse(name+" with a program in its arguments or its input", "no walls hold here", "write the program into a file, and run "+name+" FILE")
		}
	case p.operands == script:
		var scripts []arg
		for _, option := range strings.Fields(p.first) {
			scripts = append(scripts, options[option]...)
		}
		if len(scripts) == 0 && len(rest) > 0 {
			scripts, rest = rest[:1], rest[1:]
		}
		for _, a := range scripts {
			if !c.Walled && strings.HasSuffix(name, "sed") && (a.glob || !plainSed.MatchString(a.text)) {
				return refuse("the "+name+" script "+a.text, "it can run programs or use other files, and no walls hold here", "use addresses with p, d and q, and s/…/…/ without brackets and backslashes")
			}
		}
	}
	return c.paths(rest)
}

// A long name may be abbreviated, as most programs allow.
func match(list, name string) string {
	for _, full := range strings.Fields(list) {
		if full == name || len(name) > 1 && len(full) > 1 && strings.HasPrefix(full, name) {
			return full
		}
	}
	return ""
}

// It checks the paths in options; the caller checks the operands.
func (c *checker) parse(name string, p program, args []arg) (operands []arg, options map[string][]arg, err error) {
	options = map[string][]arg{}
	for len(args) > 0 {
		a := args[0]
		switch {
		case !p.globs && c.couldBeOption(a):
			return nil, nil, leadingPattern(a)
		case a.text == "--":
			return append(operands, args[1:]...), options, nil
		case strings.HasPrefix(a.text, "-") && a.text != "-":
			if args, err = c.option(name, p, args, options); err != nil {
				return nil, nil, err
			}
		case p.operands == command || p.operands == interpreter: // the options that follow are not its own
			return args, options, nil
		default:
			operands, args = append(operands, a), args[1:]
		}
	}
	return operands, options, nil
}

func (c *checker) couldBeOption(a arg) bool {
	return !c.Walled && a.glob && strings.ContainsAny(a.text[:1], "*?[")
}

func leadingPattern(a arg) error {
	return refuse("the pattern "+a.text+" here", "it can match a file name that looks like an option", "write ./"+a.text+", or quote it if it does not stand for file names")
}

// next are the arguments after the options in the first one and the value of the last.
func (c *checker) option(name string, p program, args []arg, options map[string][]arg) (next []arg, err error) {
	a, next := args[0], args[1:]
	flags, last, attached := p.optionNames(a.text)
	for _, option := range append(flags, last) {
		if match(p.refuse, option) != "" {
			return nil, refuse(name+" "+a.text, cmp.Or(p.why, "this option runs programs or uses files that the line does not show"), cmp.Or(p.instead, "leave it out"))
		}
	}
	for _, flag := range flags {
		options[flag] = append(options[flag], arg{})
	}
	text := match(p.text, last)
	takes := cmp.Or(text, match(p.values, last))
	value := arg{text: attached, glob: a.glob}
	if attached == "" && takes != "" && !strings.Contains(a.text, "=") && len(next) > 0 {
		value, next = next[0], next[1:]
	}
	last = cmp.Or(takes, last)
	options[last] = append(options[last], value)
	switch {
	case text != "":
		return next, nil
	case match(p.writes, last) != "" && (c.ReadOnly || c.closed(value.text)):
		return nil, refuse(name+" "+a.text, "commands may not change this file", "use what the command prints")
	}
	return next, c.paths([]arg{a, value})
}

var alphanumeric = lazyregexp.New(`^[A-Za-z0-9]`)

// text is -n, -rn, -n5, --name or --name=value. attached is the value of last.
func (p program) optionNames(text string) (flags []string, last, attached string) {
	if long, ok := strings.CutPrefix(text, "--"); ok {
		last, attached, _ = strings.Cut(long, "=")
		return nil, last, attached
	}
	for letters := text[1:]; alphanumeric.MatchString(letters); letters = letters[1:] {
		if match(p.text+" "+p.values, letters[:1]) != "" {
			return flags, letters[:1], letters[1:]
		}
		flags = append(flags, letters[:1])
	}
	return flags, "", ""
}

// cd may only lead into a directory below the working directory.
func (c *checker) cd(args []arg) error {
	if len(args) != 1 || args[0].glob || args[0].text == "" && !args[0].dynamic || strings.HasPrefix(args[0].text, "-") {
		return refuse("cd without one plain directory", "hone could not check later paths", "write cd DIR, with a directory inside the working directory")
	}
	c.moves++
	return c.enter(args[0])
}

func (c *checker) enter(dir arg) error {
	if err := c.path(dir); err != nil {
		return err
	}
	if c.at = c.relative(dir.text); c.at == "." || path.IsAbs(c.at) || dir.dynamic {
		c.at = ""
	}
	return nil
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

func (c *checker) find(args []arg) (err error) {
	p := row("find")
	for err == nil && len(args) > 0 {
		word, rest := args[0], args[1:]
		listed := func(list string) bool { return slices.Contains(strings.Fields(list), word.text) }
		switch {
		case c.couldBeOption(word):
			err = leadingPattern(word)
		case listed(p.refuse):
			err = refuse("find "+word.text, p.why, p.instead)
		case listed("-exec"):
			rest, err = c.findExec(rest)
		case listed("-delete"):
			err = c.deletes("find -delete")
		case listed(p.text) && len(rest) > 0 && !rest[0].glob:
			rest = rest[1:]
		default:
			err = c.path(word)
		}
		args = rest
	}
	return err
}

// In the command {} is a path in the working directory. It returns the arguments after the command.
func (c *checker) findExec(args []arg) ([]arg, error) {
	inner := slices.Clone(args)
	for i, a := range args {
		if a.text == ";" || a.text == "+" && i > 0 && args[i-1].text == "{}" {
			return args[i+1:], c.wrapped("find -exec", inner[:i], 0)
		}
		if strings.Contains(a.text, "{}") {
			inner[i] = arg{text: strings.ReplaceAll(a.text, "{}", "./x"), glob: true}
		}
	}
	return nil, refuse("find -exec without an end", "the line does not show what it runs", `end the command with \; or {} +`)
}

var (
	gitPlain = lazyregexp.New(`^(-P|--no-pager|--no-optional-locks|--literal-pathspecs|--version)$`)
	gitReads = lazyregexp.New(`^(--get|--get-all|--get-regexp|get|--list|-l|list)$`)
)

// Commands that are not in the table are refused, because an alias can run any program.
func (c *checker) git(args []arg) error {
	defer c.back(c.at, c.moves)
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		switch {
		case gitPlain.MatchString(args[0].text):
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
	if name == "config" && (len(args) < 2 || len(args) > 3 || !gitReads.MatchString(args[1].text)) {
		return refuse("this git config", "it could change what git runs", "use git config --get NAME")
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
