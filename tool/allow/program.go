package allow

import (
	"path"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// program is a row of the table, which describes how programs read their
// arguments. Options are written without dashes, separated by spaces.
type program struct {
	names    string
	operands operands
	harmless func(text string) bool // if set, the first operand is a script that must be harmless
	first    string                 // options that contain the pattern or script instead of the first operand
	text     string                 // options that take a value which is not a path
	values   string                 // other options that take a value
	writes   string                 // options whose value is a file that the program writes; also in values
	refuse   string                 // refused options, which run programs or use files that the line does not show
	why      string                 // why they are refused; empty means the usual reason
	instead  string                 // what to do instead; empty means to leave the option out
	early    bool                   // options end at the first operand
	globs    bool                   // a pattern may match a file name that looks like an option
	skip     int                    // number of operands before the command that the program runs
}

// operands is the kind of a program's operands.
type operands int

const (
	paths    operands = iota // each may be a path
	script                   // the first is a pattern or a script, the others may be paths
	text                     // none is a path
	anything                 // none is a path, and no option is checked
	command                  // they are a command; its program must be listed too
	refused                  // the program is always refused
)

const gitRefuse = "ext-diff textconv filters open-files-in-pager unsafe-paths pathspec-from-file "

// programs is the table. Arguments that a program's row does not describe may be
// paths, and so may all arguments of a program without a row.
var programs = []program{
	{names: "awk gawk mawk nawk", operands: script, harmless: harmlessAwk, text: "F v field-separator assign", early: true,
		refuse:  "f i l e E o d p D W file include load source exec pretty-print dump-variables profile debug",
		instead: "use a script in single quotes that only prints; after print, compare in parentheses, as in ($3 > 5); use the shell for pipes and redirects"},
	{names: "cut", text: "d f b c delimiter fields bytes characters output-delimiter", globs: true},
	{names: "curl", text: "H A X u header request user-agent", values: "o output", writes: "o output", refuse: "K config"},
	{names: "date", text: "d date"},
	{names: "echo expr basename dirname seq sleep which type tr kill", operands: anything},
	{names: "find", text: "-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -printf -perm -user -group -newermt",
		refuse: "-ok -okdir -execdir -files0-from -fprint -fprint0 -fprintf -fls", instead: "use -exec, and redirect what find prints",
		why: "it waits for an answer, works in other directories, or uses files that the line does not show"},
	{names: "grep egrep fgrep", operands: script, first: "e f regexp file", text: "e regexp", globs: true,
		values: "f m A B C d D file max-count after-context before-context context binary-files devices directories"},
	{names: "node perl ruby lua php", text: "e E r eval", early: true, globs: true},
	{names: "printf", operands: text, early: true, refuse: "v", why: "it sets a variable", instead: "write NAME=VALUE"},
	{names: "python pypy", text: "c", early: true, globs: true},
	{names: "rg", operands: script, first: "e f regexp file files type-list", text: "e g r E regexp glob iglob replace encoding",
		values: "f m A B C M j t T d file max-count after-context before-context context max-columns max-depth threads type type-not ignore-file sort sortr color colors",
		refuse: "z pre hostname-bin search-zip"},
	{names: "rsync", refuse: "e M rsh rsync-path remote-option files-from daemon"},
	{names: "sed gsed", operands: script, harmless: harmlessSed.MatchString, first: "e expression", text: "e expression", values: "l line-length",
		refuse: "i I f in-place file", why: "it changes files, or reads its script from one",
		instead: "print with addresses, p, d, q, s/…/…/ and y/…/…/; with the edit tool, where you have it, change files"},
	{names: "sort", text: "t k field-separator key", values: "o S T output temporary-directory", writes: "o output", refuse: "compress-program files0-from"},
	{names: "split", values: "a b C l n t", refuse: "filter"},
	{names: "stat", text: "c format printf", globs: true},
	{names: "tail", values: "c n s bytes lines pid sleep-interval", globs: true,
		refuse: "f F follow retry", why: "it waits for more output and never ends", instead: "leave it out to print what the file contains now"},
	{names: "tar gtar bsdtar", values: "f C b", refuse: "I F T P X g to-command checkpoint-action use-compress-program info-script " +
		"new-volume-script rsh-command rmt-command absolute-names files-from exclude-from index-file volno-file listed-incremental"},
	{names: "wc du", refuse: "files0-from", globs: true},
	{names: "wget", values: "O output-document", writes: "O output-document", refuse: "e i execute use-askpass input-file config"},
	{names: "zip", refuse: "T unzip-command"},

	{names: "git-log git-diff git-show git-shortlog git-reflog git-rev-list git-diff-tree git-diff-index git-diff-files",
		text: "S G L grep author committer since until after before date", values: "O output", writes: "output", refuse: gitRefuse},
	{names: "git-blame git-annotate", text: "L date", refuse: gitRefuse},
	{names: "git-grep", operands: script, first: "e f", text: "e", values: "f m A B C", refuse: gitRefuse + "O"},
	{names: "git-commit git-tag git-stash", text: "m message author date", values: "F C t file", refuse: gitRefuse, globs: true},
	{names: "git-status git-ls-files git-ls-tree git-cat-file git-rev-parse git-branch git-describe git-name-rev git-merge-base git-for-each-ref git-show-ref " +
		"git-check-ignore git-count-objects git-config git-version git-add git-rm git-mv git-restore git-checkout git-switch git-reset git-clean git-apply",
		refuse: gitRefuse, globs: true},

	{names: "command", operands: command, text: "v V", refuse: "p", early: true},
	{names: "env", operands: command, text: "u unset", early: true,
		refuse: "S C a split-string chdir argv0 block-signal default-signal ignore-signal"},
	{names: "nice ionice stdbuf", operands: command, values: "n c p i o e adjustment class classdata pid input output error", early: true},
	{names: "nohup setsid builtin time", operands: command, early: true},
	{names: "timeout chrt taskset", operands: command, values: "k s kill-after signal", early: true, skip: 1},
	{names: "xargs", text: "I replace", values: "n L P s max-args max-lines max-procs max-chars", early: true,
		refuse: "a d E e i arg-file delimiter eof process-slot-var"},
	{names: "eval source . exec alias unalias trap enable hash shopt read mapfile readarray getopts wait declare typeset local readonly unset let " +
		"sudo su doas pkexec chroot unshare nsenter parallel watch script flock screen tmux strace gdb busybox toybox ssh crontab at batch systemd-run " +
		"less more most man info vi vim nvim view ex ed nano emacs top htop", operands: refused},
}

// row returns the row of a program. It ignores the directory of its path and a
// version at the end of its name.
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

var setOption = lazyregexp.New(`^(-[eux]*o?|pipefail|errexit|nounset|xtrace)$`)

// run checks a program and its arguments.
func (c *checker) run(name string, args []arg) error {
	fed := c.fed
	c.fed, c.names = false, false
	switch name {
	case "true", "false", ":", "exit", "break", "continue":
		return c.paths(args)
	case "cd":
		return c.cd(args)
	case "set":
		for _, a := range args {
			if !setOption.MatchString(a.text) {
				return refuse("set "+a.text, "it changes how the shell reads the line", "use set -e or set -o pipefail")
			}
		}
		return nil
	}
	if err := c.listed(name); err != nil && !c.looksUp(name, args) {
		return err
	}
	if c.depth++; c.depth > 4 {
		return refuse("so many programs that run each other", "they are nested too deeply to check", "run the last one directly")
	}
	defer func() { c.depth-- }()
	switch name {
	case "find":
		return c.find(args)
	case "git":
		return c.git(args)
	case "tar", "gtar", "bsdtar":
		return c.tar(name, args)
	case "test", "[":
		return c.tests(args)
	case "bash", "sh", "dash", "zsh", "ksh":
		return c.shell(name, args)
	case "xargs":
		return c.xargs(args, fed)
	}
	p := row(name)
	if c.Walled && !c.ReadOnly && strings.HasSuffix(name, "sed") {
		p.refuse, p.why = "I f file", ""
	}
	return c.plain(name, p, args)
}

// lookups are commands that print what is known of dependencies.
var lookups = []string{"go doc", "go list -m", "npm ls", "pip show", "pip3 show", "cargo metadata --offline"}

var lookupOption = lazyregexp.New(`^(?:[^-].*|-(?:all|src|u|short|c|json|f|versions|deps)|--(?:all|json|long|depth=\d+|format-version(?:=1)?|no-deps|files))$`)

// looksUp reports whether a command may run although its program is not listed. What cargo
// runs is a matter of settings in the tree.
func (c *checker) looksUp(name string, args []arg) bool {
	words := []string{name}
	for _, a := range args {
		if !a.known() {
			return false
		}
		words = append(words, a.text)
	}
	return slices.ContainsFunc(lookups, func(l string) bool {
		start := strings.Fields(l)
		if len(words) < len(start) || !slices.Equal(words[:len(start)], start) || name == "cargo" && !c.Walled {
			return false
		}
		return !slices.ContainsFunc(words[len(start):], func(word string) bool { return !lookupOption.MatchString(word) })
	})
}

// listed refuses a program unless the list contains the name that the line uses.
func (c *checker) listed(name string) error {
	same := func(p string) bool { return p == name || p == "test" && name == "[" }
	if strings.Contains(name, "/") {
		same = func(p string) bool { return strings.Contains(p, "/") && path.Clean(p) == path.Join(c.at, name) }
	}
	switch {
	case !slices.ContainsFunc(c.Programs, same) || c.outside(name):
		return c.unlistedError(name)
	case strings.Contains(name, "/") && c.moves > 0 && c.at == "":
		return refuse(name+" after cd", "the listed path is relative to the working directory", "run it before the cd, or in a call of its own")
	}
	return nil
}

// plain checks a program that only needs its row of the table.
func (c *checker) plain(name string, p program, args []arg) error {
	switch p.operands {
	case anything:
		return nil
	case refused:
		return refuse(name, "hone cannot check what it runs or sets, or it does not end by itself", "run those programs directly, or use the read, grep, edit and write tools")
	}
	parsed, err := c.parse(name, p, args)
	rest := parsed.operands
	switch {
	case err != nil || p.operands == text:
		return err
	case p.operands == command:
		return c.wrapped(name, rest, p.skip)
	case p.operands == script:
		first := parsed.values(p.first)
		if len(first) == 0 && len(rest) > 0 {
			first, rest = rest[:1], rest[1:]
		}
		for _, a := range first {
			if p.harmless != nil && !(a.known() && p.harmless(a.text)) {
				return refuse("the "+name+" script "+a.text, "it can run programs or use other files, or hone cannot check it", p.instead)
			}
		}
	}
	return c.paths(rest)
}
