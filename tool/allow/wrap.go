package allow

import (
	"slices"
	"strings"
)

// wrapper is a program that runs another one, which must be listed too.
func (c *checker) wrapper(program string, args []arg) error {
	if program == "env" {
		return c.env(args)
	}
	p, err := wrapperGrammar(program).parse(program, args)
	if err != nil {
		return err
	}
	for _, o := range p.options {
		if program == "command" && (o.name == "v" || o.name == "V") {
			return nil
		}
	}
	if err := c.sorted(parsed{options: p.options}); err != nil {
		return err
	}
	rest := p.operands
	switch {
	case program == "chrt" || program == "taskset", program == "timeout":
		if len(rest) == 0 || !rest[0].exact {
			return unclear(program)
		}
		rest = rest[1:]
	case program == "ionice" && p.has("p"):
		return nil
	}
	return c.runs(program, rest)
}

func wrapperGrammar(program string) grammar {
	g := grammar{early: true}
	switch program {
	case "nice":
		g.values, g.long = "n", []string{"adjustment"}
	case "timeout":
		g.values, g.long = "ks", []string{"kill-after", "signal"}
	case "stdbuf":
		g.values, g.long = "ioe", []string{"input", "output", "error"}
	case "time":
		g.values, g.texts, g.long, g.free = "o", "f", []string{"output"}, []string{"format"}
	case "ionice":
		g.values, g.long = "cnp", []string{"class", "classdata", "pid"}
	case "command":
		g.refuse = []string{"p"}
	}
	return g
}

func unclear(program string) error {
	return disallow(program+" with what is not written out", "it cannot be seen what would run", "write the program's name after "+program)
}

// runs checks the program that stands behind another one.
func (c *checker) runs(program string, rest []arg) error {
	if len(rest) == 0 {
		return nil
	}
	if !rest[0].fixed {
		return unclear(program)
	}
	if rest[0].text == "cd" {
		return disallow(program+" cd", "what comes after it could not be checked", "write cd FOLDER as a command of its own")
	}
	return c.run(rest[0].text, rest[1:])
}

// env sets variables and runs a program, or prints them.
func (c *checker) env(args []arg) error {
	g := grammar{early: true, texts: "u", free: []string{"unset"}, refuse: []string{"S", "split-string", "C", "chdir", "argv0", "a",
		"block-signal", "default-signal", "ignore-signal"}}
	args = slices.Clone(args)
	for i, a := range args {
		if a.fixed && a.text == "-" {
			args[i].text = "-i"
		}
	}
	p, err := g.parse("env", args)
	if err != nil {
		return err
	}
	rest := p.operands
	for len(rest) > 0 {
		name, _, ok := strings.Cut(rest[0].head, "=")
		if !ok {
			break
		}
		if err := assignable(name); err != nil {
			return err
		}
		if err := c.path(rest[0]); err != nil {
			return err
		}
		rest = rest[1:]
	}
	return c.runs("env", rest)
}

// xargs behind find -print0: every argument that it adds is a path inside.
func (c *checker) xargs(args []arg) error {
	g := grammar{early: true, values: "nLPs", texts: "I", long: []string{"max-args", "max-lines", "max-procs", "max-chars"},
		free: []string{"replace"}, refuse: []string{"a", "arg-file", "d", "delimiter", "E", "eof", "e", "i", "process-slot-var"}}
	p, err := g.parse("xargs", args)
	if err != nil {
		return err
	}
	null := p.has("0") || slices.ContainsFunc(p.options, func(o option) bool { return len(o.name) > 1 && strings.HasPrefix("null", o.name) })
	if !null {
		return disallow("xargs without -0", "a name with a space in it would become two", "write find … -print0 | xargs -0 PROGRAM")
	}
	if len(p.operands) == 0 {
		return unclear("xargs")
	}
	found := arg{text: "./x"}
	rest := slices.Clone(p.operands)
	for _, o := range p.options {
		if o.name != "I" && o.name != "replace" {
			continue
		}
		if !o.value.fixed || o.value.text == "" {
			return unclear("xargs -I")
		}
		rest = filledIn(rest, o.value.text)
	}
	return c.runs("xargs", append(rest, found))
}

// filledIn puts a path in the place of a mark, in all arguments.
func filledIn(args []arg, mark string) []arg {
	out := slices.Clone(args)
	for i, a := range out {
		if strings.Contains(a.text, mark) {
			out[i] = arg{text: strings.ReplaceAll(a.text, mark, "./x"), head: a.text[:strings.Index(a.text, mark)]}
		}
	}
	return out
}

// findActs reports whether a word of find does something else than testing.
func findActs(word string) bool {
	switch word {
	case "-exec", "-execdir", "-ok", "-okdir", "-delete", "-print", "-print0", "-printf", "-fprint", "-fprint0", "-fprintf", "-fls", "-ls", "-files0-from":
		return true
	}
	return false
}

// find checks an expression word by word.
func (c *checker) find(args []arg) error {
	for i := 0; i < len(args); {
		a := args[i]
		switch {
		case a.found || a.vague || strings.HasPrefix(a.text, "-") && !a.exact:
			return maybeOption("find", a)
		case !strings.HasPrefix(a.text, "-"):
			if err := c.path(a); err != nil {
				return err
			}
			i++
			continue
		}
		n, err := c.findOption(a.text, args[i+1:])
		if err != nil {
			return err
		}
		i += 1 + n
	}
	return nil
}

// findOption checks one test or action, and says how many words it takes.
func (c *checker) findOption(word string, rest []arg) (int, error) {
	switch word {
	case "-exec", "-execdir":
		return c.findExec(word, rest)
	case "-ok", "-okdir":
		return 0, disallow("find "+word, "nobody can answer it", "use -exec")
	case "-delete":
		if c.ReadOnly || !c.listed("rm") {
			return 0, disallow("find -delete", "it deletes, and rm is not listed", "list the files and say which should go")
		}
		return 0, nil
	case "-files0-from":
		return 0, disallow("find "+word, "the paths in it cannot be seen", "write the paths out")
	case "-fprint", "-fprint0", "-fprintf", "-fls":
		if c.ReadOnly || len(rest) == 0 {
			return 0, disallow("find "+word, "it writes a file", "use what find prints")
		}
		if c.closed(rest[0].text) {
			return 0, disallow("find "+word+" to "+rest[0].text, "this folder is not the model's to change", "leave it alone")
		}
		return 1, c.inside(rest[0])
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-lname", "-ilname", "-printf", "-perm", "-user", "-group",
		"-size", "-type", "-xtype", "-mtime", "-mmin", "-ctime", "-cmin", "-atime", "-amin", "-maxdepth", "-mindepth", "-regextype", "-newermt", "-fstype":
		if len(rest) > 0 && (rest[0].active || !rest[0].exact && word != "-name" && word != "-iname") {
			return 0, disallow("find "+word+" "+rest[0].text, "the shell would put names there", "quote the pattern")
		}
		return min(1, len(rest)), nil
	}
	return 0, nil
}

// findExec checks the command of -exec, in which {} is a path inside.
func (c *checker) findExec(word string, rest []arg) (int, error) {
	end := -1
	for i, a := range rest {
		if a.fixed && (a.text == ";" || a.text == "+" && i > 0 && rest[i-1].text == "{}") {
			end = i
			break
		}
	}
	if end < 1 {
		return 0, disallow("find "+word+" without an end", "it cannot be seen what would run", `end it with \; or +`)
	}
	if rest[0].fixed && strings.Contains(rest[0].text, "{}") {
		return 0, unclear("find " + word)
	}
	if rest[0].text == "git" && word == "-execdir" {
		return 0, disallow("find -execdir git", "it would work in another folder", "run it in the working directory")
	}
	return end + 1, c.runs("find "+word, filledIn(rest[:end], "{}"))
}
