package allow

import (
	"slices"
	"strings"
)

// grammar is how a program reads its options, as far as it matters.
type grammar struct {
	values string   // letters that take a value
	texts  string   // letters that take a value which is no path; not in values
	long   []string // long options that take a value, as a word of its own too
	free   []string // of those, whose value is no path; not in long
	behind []string // long options whose value stands behind =, and is no path
	refuse []string // options that run, read or write what cannot be seen: "e" or "exec"
	known  []string // long options that are fine though one of refuse begins like them
	early  bool     // options end at the first operand
	names  bool     // no option does harm that a file could be named like
}

// option is one option of a call.
type option struct {
	name  string // without dashes
	value arg
	given bool // it has a value
	free  bool // the value is no path
}

// parsed is a call's arguments, sorted.
type parsed struct {
	options  []option
	operands []arg
}

func (p parsed) has(names ...string) bool {
	return slices.ContainsFunc(p.options, func(o option) bool { return slices.Contains(names, o.name) })
}

// values are the values of options.
func (p parsed) values(names ...string) (list []arg) {
	for _, o := range p.options {
		if o.given && slices.Contains(names, o.name) {
			list = append(list, o.value)
		}
	}
	return list
}

// parse sorts a program's arguments as the common libraries do, abbreviations
// included.
func (g grammar) parse(program string, args []arg) (parsed, error) {
	r := &reader{g: g, program: program, rest: args}
	for len(r.rest) > 0 {
		a := r.rest[0]
		r.rest = r.rest[1:]
		switch {
		case a.fixed && a.text == "--":
			return r.end(nil), nil
		case a.found && g.names:
			r.operands = append(r.operands, a)
		case a.found || a.vague:
			return r.parsed, maybeOption(program, a)
		case !strings.HasPrefix(a.text, "-") || a.text == "-" && a.fixed:
			if g.early {
				return r.end(&a), nil
			}
			r.operands = append(r.operands, a)
		default:
			if err := r.option(a); err != nil {
				return r.parsed, err
			}
		}
	}
	return r.parsed, nil
}

func maybeOption(program string, a arg) error {
	if a.found {
		return disallow("the pattern "+a.text+" for "+program, "a file's name could be taken for an option", "write ./"+a.text+", or quote it where it is no pattern of files")
	}
	return disallow("an argument of "+program+" that is not written out", "it could be an option", "write the value itself")
}

// reader is a call that is being parsed.
type reader struct {
	parsed
	g       grammar
	program string
	rest    []arg
}

// end makes operands of all that is left.
func (r *reader) end(first *arg) parsed {
	if first != nil {
		r.operands = append(r.operands, *first)
	}
	r.operands = append(r.operands, r.rest...)
	return r.parsed
}

func (r *reader) option(a arg) error {
	long := strings.HasPrefix(a.text, "--")
	if !a.exact && !(long && strings.Contains(a.head, "=")) {
		return maybeOption(r.program, a)
	}
	if long {
		return r.long(a)
	}
	return r.letters(a)
}

// long is --name, --name=value or --name value.
func (r *reader) long(a arg) error {
	name, held, given := strings.Cut(strings.TrimLeft(a.text, "-"), "=")
	if full, ok := r.denied(name); ok {
		return r.refuse("--" + full)
	}
	free := begins(r.g.free, name) || given && begins(r.g.behind, name)
	o := option{name: name, given: given, free: free, value: a}
	o.value.text = held
	if !given && (free || begins(r.g.long, name)) {
		o.value, o.given = r.next()
	}
	r.options = append(r.options, o)
	return nil
}

// denied finds the refused option that a name, perhaps shortened, means.
func (r *reader) denied(name string) (string, bool) {
	if slices.Contains(r.g.known, name) || name == "" {
		return "", false
	}
	for _, full := range r.g.refuse {
		if full == name || len(full) > 1 && strings.HasPrefix(full, name) {
			return full, true
		}
	}
	return "", false
}

// begins reports whether one of the names is meant by a name, perhaps shortened.
func begins(names []string, name string) bool {
	return name != "" && slices.ContainsFunc(names, func(full string) bool { return strings.HasPrefix(full, name) })
}

// letters are options of one letter each, the last of which may have a value.
func (r *reader) letters(a arg) error {
	text := a.text[1:]
	for i := range len(text) {
		letter := text[i : i+1]
		if slices.Contains(r.g.refuse, letter) {
			return r.refuse("-" + letter)
		}
		if !alphanumeric(text[i]) {
			// The value of a letter that is not known to have one.
			a.text = text[i:]
			r.options = append(r.options, option{name: text[:i], given: true, value: a})
			return nil
		}
		free := strings.Contains(r.g.texts, letter)
		if !free && !strings.Contains(r.g.values, letter) {
			r.options = append(r.options, option{name: letter})
			continue
		}
		o := option{name: letter, given: true, free: free, value: a}
		o.value.text = text[i+1:]
		if o.value.text == "" && a.exact {
			o.value, o.given = r.next()
		}
		r.options = append(r.options, o)
		return nil
	}
	return nil
}

func alphanumeric(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

func (r *reader) next() (arg, bool) {
	if len(r.rest) == 0 {
		return arg{}, false
	}
	a := r.rest[0]
	r.rest = r.rest[1:]
	return a, true
}

func (r *reader) refuse(option string) error {
	if r.program == "tail" {
		return disallow("the option "+option+" of tail", "it waits for more, and does not end", "print what is there")
	}
	return disallow("the option "+option+" of "+r.program, "it runs, reads or writes what cannot be seen in the line", "do without it")
}
