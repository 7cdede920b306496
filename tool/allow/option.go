package allow

import (
	"cmp"
	"strings"

	"hone/internal/lazyregexp"
)

// call holds the arguments of a program, sorted as its row in the table says.
type call struct {
	options  map[string][]arg // values by option name; a flag has an empty value
	operands []arg
}

// values returns the values of the listed options.
func (c call) values(list string) (values []arg) {
	for _, name := range strings.Fields(list) {
		values = append(values, c.options[name]...)
	}
	return values
}

// match returns the listed option that a name means; empty if there is none. A
// long name may be abbreviated, as most programs allow.
func match(list, name string) string {
	for _, full := range strings.Fields(list) {
		if full == name || len(name) > 1 && len(full) > 1 && strings.HasPrefix(full, name) {
			return full
		}
	}
	return ""
}

// parse sorts arguments as the common option libraries do. It checks the paths in
// options; the caller checks the operands.
func (c *checker) parse(name string, p program, args []arg) (call, error) {
	parsed := call{options: map[string][]arg{}}
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a.startsWithPattern() && !p.globs:
			return call{}, leadingPattern(a)
		case a.text == "--":
			parsed.operands = append(parsed.operands, args...)
			return parsed, nil
		case strings.HasPrefix(a.text, "-") && a.text != "-":
			next, err := c.option(name, p, a, args, parsed.options)
			if err != nil {
				return call{}, err
			}
			args = next
		case p.early:
			parsed.operands = append([]arg{a}, args...)
			return parsed, nil
		default:
			parsed.operands = append(parsed.operands, a)
		}
	}
	return parsed, nil
}

// startsWithPattern reports whether the argument begins with * or another pattern.
func (a arg) startsWithPattern() bool { return a.glob && strings.ContainsAny(a.text[:1], "*?[") }

func leadingPattern(a arg) error {
	return refuse("the pattern "+a.text+" here", "it can match a file name that looks like an option", "write ./"+a.text+", or quote it if it does not stand for file names")
}

// option adds the options in one argument to options, and returns the arguments
// that follow. If the value of the last option is not attached, option consumes
// the next argument.
func (c *checker) option(name string, p program, a arg, next []arg, options map[string][]arg) ([]arg, error) {
	flags, last, attached := p.optionNames(a.text)
	for _, option := range append(flags, last) {
		if match(p.refuse, option) != "" {
			return nil, refuse(name+" "+a.text, cmp.Or(p.why, "this option runs programs or uses files that the line does not show"), cmp.Or(p.instead, "leave it out"))
		}
	}
	text := match(p.text, last)
	takes := cmp.Or(text, match(p.values, last))
	value := arg{attached, a.glob}
	if attached == "" && takes != "" && !strings.Contains(a.text, "=") && len(next) > 0 {
		value, next = next[0], next[1:]
	}
	for _, option := range flags {
		options[option] = append(options[option], arg{})
	}
	last = cmp.Or(takes, last)
	options[last] = append(options[last], value)
	if text != "" {
		return next, nil
	}
	if match(p.writes, last) != "" {
		if err := c.refuseWrite(name, a, value); err != nil {
			return nil, err
		}
	}
	return next, c.paths([]arg{a, value})
}

// refuseWrite refuses an option that writes a file which commands may not change.
func (c *checker) refuseWrite(name string, option, file arg) error {
	switch {
	case file.text == "-" || file.text == "/dev/null":
		return nil
	case c.ReadOnly:
		return refuse(name+" "+option.text, "this session only reads files", "use what the command prints")
	case c.closed(file.text):
		return refuse(name+" "+option.text, "commands may not change this directory", "leave it unchanged")
	}
	return nil
}

var alphanumeric = lazyregexp.New(`^[A-Za-z0-9]`)

// optionNames splits an argument such as -n, -rn, -n5, --name or --name=value: it
// returns the flags, the last option, and the value attached to that.
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
