package allow

import (
	"path"
	"slices"
	"strings"
)

// mostInner is how deep programs may run others that run others.
const mostInner = 4

// run checks a program and its arguments.
func (c *checker) run(program string, args []arg) error {
	fed := c.fed
	c.fed = false
	if err := shellsOwn(program); err != nil {
		return err
	}
	if done, err := c.builtin(program, args); done {
		return err
	}
	if !c.listed(program) {
		return c.unlisted(program)
	}
	if c.inner++; c.inner > mostInner {
		return disallow("programs in programs in programs", "it cannot be checked", "run the last one itself")
	}
	defer func() { c.inner-- }()
	if fed && program == "xargs" {
		return c.xargs(args)
	}
	return c.listedProgram(program, args)
}

// listed reports whether a program is on the list, by the name that is written
// there; [ is test by another name. A path means another file after a cd.
func (c *checker) listed(program string) bool {
	if program == "[" && slices.Contains(c.Programs, "test") {
		return true
	}
	if strings.Contains(program, "/") {
		return !c.moves && !c.outside(program) && slices.ContainsFunc(c.Programs, func(p string) bool {
			return strings.Contains(p, "/") && path.Clean(p) == path.Clean(program)
		})
	}
	return slices.Contains(c.Programs, program)
}

// shellsOwn refuses what a shell does itself to run or rename others. No list
// allows it.
func shellsOwn(program string) error {
	switch program {
	case "eval", "source", ".":
		return disallow(program, "it runs what cannot be seen in the line", "write the commands out")
	case "exec":
		return disallow(program, "it takes the shell's place, or its streams", "run the program without exec")
	case "alias", "unalias", "trap", "enable", "hash", "bind", "complete", "compgen", "compopt", "shopt", "coproc", "fc", "history",
		"declare", "typeset", "local", "readonly", "nameref", "let", "mapfile", "readarray", "read", "getopts", "unset", "pushd", "popd", "dirs",
		"bg", "fg", "disown", "suspend", "logout", "ulimit", "umask", "caller", "function", "select", "chdir":
		return disallow("the shell's "+program, "it changes what later words mean or run", "use listed programs alone")
	case "sudo", "su", "doas", "pkexec", "runuser", "setpriv", "sg", "chroot", "unshare", "nsenter", "parallel", "watch", "script", "scriptreplay", "flock",
		"screen", "tmux", "strace", "ltrace", "busybox", "toybox", "entr", "at", "batch", "crontab", "expect", "unbuffer", "socat", "start-stop-daemon",
		"systemd-run", "dbus-run-session", "run-parts", "fakeroot", "proot", "rlwrap", "ssh", "gdb", "dash-c", "osascript":
		return disallow(program, "it runs other programs in a way that cannot be checked", "run the program itself")
	case "less", "more", "most", "man", "info", "vi", "vim", "nvim", "view", "ex", "ed", "nano", "pico", "emacs", "emacsclient", "top", "htop":
		return disallow(program, "there is no terminal, and it runs other programs on request", "use the read, edit, grep or write tool")
	}
	return nil
}

// builtin checks the parts of the shell that run nothing, which need not be
// listed; done says that the program is one.
func (c *checker) builtin(program string, args []arg) (done bool, err error) {
	switch program {
	case "true", "false", ":", "exit", "break", "continue":
		return true, c.paths(args)
	case "cd":
		return true, c.cd(args)
	case "set":
		return true, set(args)
	case "export":
		return true, disallow("export of what is not NAME=VALUE", "it cannot be checked", "write export NAME=VALUE")
	}
	return false, nil
}

func (c *checker) cd(args []arg) error {
	if len(args) == 2 && args[0].fixed && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) != 1 || !args[0].fixed || args[0].text == "" || strings.HasPrefix(args[0].text, "-") {
		return disallow("cd to what is not written out", "paths could not be checked after it", "write cd FOLDER, in the working directory")
	}
	return c.inside(args[0])
}

// set lets the options pass that stop a line, or show it.
func set(args []arg) error {
	for _, a := range args {
		switch a.text {
		case "-e", "-u", "-x", "-eu", "-ex", "-eux", "-o", "-eo", "-euo", "-euxo", "pipefail", "errexit", "nounset", "xtrace":
		default:
			return disallow("set "+a.text, "it changes how the shell reads lines", "use set -e or set -o pipefail")
		}
	}
	return nil
}

// paths checks arguments of which nothing else is known.
func (c *checker) paths(args []arg) error {
	for _, a := range args {
		if err := c.path(a); err != nil {
			return err
		}
	}
	return nil
}

// listedProgram checks how a listed program is used.
func (c *checker) listedProgram(program string, args []arg) error {
	switch program {
	case "echo", "expr", "basename", "dirname", "seq", "sleep", "which", "type", "tr", "kill":
		return nil
	case "printf":
		return printf(args)
	case "test", "[":
		return c.test(program, args)
	case "grep", "egrep", "fgrep", "rg":
		return c.search(program, args)
	case "find":
		return c.find(args)
	case "sed", "gsed":
		return c.sed(program, args)
	case "awk", "gawk", "mawk", "nawk":
		return c.awk(program, args)
	case "git":
		return c.git(args)
	case "tar", "gtar", "bsdtar":
		return c.tar(program, args)
	case "env", "nice", "nohup", "timeout", "stdbuf", "setsid", "time", "command", "builtin", "ionice", "chrt", "taskset":
		return c.wrapper(program, args)
	case "xargs":
		return disallow("xargs", "what it is given cannot be seen", "write find … -print0 | xargs -0 PROGRAM, or find … -exec PROGRAM {} +")
	case "bash", "sh", "dash", "zsh", "ksh":
		return c.shell(program, args)
	}
	if g, ok := simplePrograms(program); ok {
		return c.simpleProgram(program, g, args)
	}
	return c.paths(codeApart(program, args))
}

// codeApart leaves out the code that an interpreter is given to run, which is
// what its being listed means.
func codeApart(program string, args []arg) []arg {
	flag := ""
	switch base := strings.TrimRight(path.Base(program), "0123456789."); base {
	case "python", "pypy":
		flag = "-c"
	case "node", "perl", "ruby", "lua":
		flag = "-e"
	case "php":
		flag = "-r"
	}
	for i, a := range args {
		code := flag != "" && a.fixed && strings.HasPrefix(a.text, "-") && strings.HasSuffix(a.text, flag[1:])
		if code && i+1 < len(args) {
			return append(slices.Clone(args[:i+1]), args[i+2:]...)
		}
		if !strings.HasPrefix(a.text, "-") {
			break
		}
	}
	return args
}

// simplePrograms are programs of which only options matter.
func simplePrograms(program string) (grammar, bool) {
	switch program {
	case "sort":
		return grammar{values: "oST", texts: "tk", long: []string{"output", "temporary-directory"}, free: []string{"field-separator", "key"},
			refuse: []string{"compress-program", "files0-from"}}, true
	case "tail":
		return grammar{names: true, values: "cns", refuse: []string{"f", "F", "follow", "retry"}, long: []string{"bytes", "lines", "pid", "sleep-interval"}}, true
	case "cut":
		return grammar{names: true, texts: "dfbc", free: []string{"delimiter", "fields", "bytes", "characters", "output-delimiter"}}, true
	case "wc", "du":
		return grammar{names: true, refuse: []string{"files0-from"}}, true
	case "split":
		return grammar{values: "abClnt", refuse: []string{"filter"}}, true
	case "zip":
		return grammar{refuse: []string{"T", "TT", "unzip-command"}}, true
	case "rsync":
		return grammar{refuse: []string{"e", "rsh", "rsync-path", "M", "remote-option", "files-from", "daemon"}}, true
	case "wget":
		return grammar{refuse: []string{"e", "execute", "use-askpass", "i", "input-file", "config"}}, true
	case "curl":
		return grammar{refuse: []string{"K", "config"}, texts: "HAXu", free: []string{"header", "request", "user-agent"}}, true
	case "stat":
		return grammar{names: true, texts: "c", free: []string{"format", "printf"}}, true
	case "date":
		return grammar{texts: "d", free: []string{"date"}}, true
	}
	return grammar{}, false
}

func (c *checker) simpleProgram(program string, g grammar, args []arg) error {
	p, err := g.parse(program, args)
	if err != nil {
		return err
	}
	return c.sorted(p)
}

// sorted checks the paths among what was parsed.
func (c *checker) sorted(p parsed) error {
	for _, o := range p.options {
		if !o.given || o.free {
			continue
		}
		if err := c.path(o.value); err != nil {
			return err
		}
	}
	return c.paths(p.operands)
}

func printf(args []arg) error {
	if len(args) > 0 && (args[0].found || args[0].vague || strings.HasPrefix(args[0].text, "-v") || strings.HasPrefix(args[0].text, "-") && !args[0].exact) {
		return disallow("printf -v", "it sets a variable", "write NAME=VALUE")
	}
	return nil
}

// test checks the operands of the operators that look at files, or do more.
func (c *checker) test(program string, args []arg) error {
	for i, a := range args {
		if a.active {
			return disallow("the pattern "+a.text+" in "+program, "it may become several words", "quote it, or use find")
		}
		if i+1 < len(args) {
			if err := c.tested(a.text, args[i+1]); err != nil {
				return err
			}
		}
		if i > 0 && slices.Contains([]string{"-nt", "-ot", "-ef"}, a.text) {
			if err := c.paths(args[i-1 : i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// tested checks what stands behind an operator of a test.
func (c *checker) tested(operator string, a arg) error {
	switch operator {
	case "-v", "-R":
		return disallow("the test "+operator, "it can run what stands in an index", `write [ -n "$NAME" ]`)
	case "-e", "-f", "-d", "-c", "-b", "-p", "-S", "-L", "-h", "-k", "-g", "-u", "-G", "-O", "-N", "-r", "-w", "-x", "-s", "-nt", "-ot", "-ef", "-a":
		return c.path(a)
	}
	return nil
}

// search is grep and rg: the first operand is the pattern, unless an option
// gives it.
func (c *checker) search(program string, args []arg) error {
	g := grammar{names: true, values: "fmABCDd", texts: "e", free: []string{"regexp"},
		long: []string{"file", "max-count", "after-context", "before-context", "context", "binary-files", "devices", "directories"}}
	if program == "rg" {
		g = grammar{values: "fmABCMjtTd", texts: "egrE", free: []string{"regexp", "glob", "iglob", "replace", "encoding"},
			long:   []string{"file", "max-count", "after-context", "before-context", "context", "max-columns", "threads", "type", "type-not", "max-depth", "ignore-file", "sort", "sortr", "color", "colors"},
			refuse: []string{"pre", "hostname-bin", "search-zip", "z"}, known: []string{"h"}}
	}
	p, err := g.parse(program, args)
	if err != nil {
		return err
	}
	given := p.has("e", "f", "files", "type-list") || slices.ContainsFunc(p.options, func(o option) bool {
		return len(o.name) > 1 && (strings.HasPrefix("regexp", o.name) || strings.HasPrefix("file", o.name))
	})
	if !given && len(p.operands) > 0 {
		p.operands = p.operands[1:]
	}
	return c.sorted(p)
}

// tar lets pass what packs and unpacks by itself.
func (c *checker) tar(program string, args []arg) error {
	if len(args) > 0 && !strings.HasPrefix(args[0].text, "-") {
		args = slices.Clone(args)
		args[0].text = "-" + args[0].text
		if strings.ContainsAny(args[0].text, "IFTPX") || !args[0].exact {
			return disallow("tar "+args[0].text[1:], "it runs, reads or writes what cannot be seen in the line", "do without it")
		}
		args[0].text = strings.TrimRight(args[0].text, "fCb")
	}
	g := grammar{values: "fCb", refuse: []string{"I", "F", "T", "P", "X", "to-command", "checkpoint-action", "use-compress-program", "info-script", "new-volume-script",
		"rsh-command", "rmt-command", "absolute-names", "files-from", "exclude-from", "index-file", "volno-file", "listed-incremental", "g"}}
	p, err := g.parse(program, args)
	if err != nil {
		return err
	}
	for _, a := range append(p.values("f", "file"), p.operands...) {
		if strings.Contains(a.text, ":") {
			return disallow("tar with "+a.text, "it means another machine", "use a name without a colon")
		}
	}
	return c.sorted(p)
}

// shell is a shell that is listed: what it runs is a file, or a line that is
// checked like this one.
func (c *checker) shell(program string, args []arg) error {
	switch {
	case len(args) == 2 && args[0].text == "-c" && args[1].fixed:
		return c.nested(args[1].text)
	case len(args) > 0 && args[0].fixed && !strings.HasPrefix(args[0].text, "-"):
		return c.paths(args)
	}
	return disallow(program+" with no file to run", "what it runs cannot be seen", "write the commands themselves, or "+program+" FILE")
}

// nested checks a line within the line.
func (c *checker) nested(line string) error {
	if err := readable(line); err != nil {
		return err
	}
	file, err := parseLine(line)
	if err != nil {
		return err
	}
	inner := &checker{Lines: c.Lines, vars: scope{}, moves: c.moves || movesAway(file), inner: c.inner}
	return inner.statements(file.Stmts)
}
