package allow

import (
	"cmp"
	"regexp"
	"strings"
)

// call is the arguments of a program, sorted by its row in the table.
type call struct {
	options  map[string][]arg // values by the option's name; a flag has an empty value
	operands []arg
}

// values returns the values of the options in a list.
func (c call) values(list string) (values []arg) {
	for _, name := range strings.Fields(list) {
		values = append(values, c.options[name]...)
	}
	return values
}

// match returns the option in a list that a name means, or nothing. A long name
// may be shortened, as most programs let it be.
func match(list, name string) string {
	for _, full := range strings.Fields(list) {
		if full == name || len(name) > 1 && len(full) > 1 && strings.HasPrefix(full, name) {
			return full
		}
	}
	return ""
}

// parse sorts arguments as the common libraries do. It checks the paths in
// options, and leaves the operands to the caller.
func (c *checker) parse(name string, p program, args []arg) (call, error) {
	parsed := call{options: map[string][]arg{}}
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		switch {
		case a.leads() && !p.globs:
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

// leads reports whether the argument begins with a pattern.
func (a arg) leads() bool { return a.glob && strings.ContainsAny(a.text[:1], "*?[") }

func leadingPattern(a arg) error {
	return refuse("the pattern "+a.text+" here", "it can match a name that looks like an option", "write ./"+a.text+", or quote it if it is not for file names")
}

// option adds the options of one argument to a call. If the last one takes a
// value that is not in the argument, it takes the next one, and option returns
// the arguments after that.
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
	return next, c.paths([]arg{a, value})
}

var alphanumeric = regexp.MustCompile(`^[A-Za-z0-9]`)

// optionNames returns the options in one argument, such as -n, -rn, -n5, --name
// or --name=value: the flags, the last one, and the value attached to it.
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
