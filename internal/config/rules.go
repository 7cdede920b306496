package config

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"hone/internal/lazyregexp"

	"github.com/bmatcuk/doublestar/v4"
)

// rules restrict texts and lists of texts: the values of the column [Row.Valid], beside
// "positive", "natural" (0 or greater), "size" and "size>0" (numbers of bytes) of numbers, and a
// choice such as "ask|none|all".
var rules = map[string]struct {
	example string // a text that it accepts, for a hint
	// find returns what is wrong with a text, and what the user should write. An empty problem
	// means that all is well; nil accepts any text.
	find func(s string) (problem, hint string)
}{
	"argument": {"gemini", nil},
	"duration": {"10m", durationProblem},
	"file":     {"", unless(file, "%q is not the name of a file", "name a file, such as ./-; or use --json, which prints the same to standard output")},
	"glob":     {"docs/**", globProblem},
	"home":     {"~/.gemini/settings.json", below("~/", "%q is not in the home directory", `write a path that begins with ~/, such as "~/.gemini/settings.json"`)},
	"line":     {"", unless(printed, "%q is not one line of plain text", "remove what cannot be printed")},
	"loopback": {"", loopbackProblem},
	"model":    {"openai/gpt-5", unless(modelName, notModel, named)},
	"models":   {"openai/gpt-5", unless(modelNames, notModel, named)},
	"name":     {"gemini", unless(name, "%q is not a valid name", "use at most 60 letters, digits, - and _")},
	"number":   {"100", unless(number, "%q is not a number", `write a number, such as "100"`)},
	"path":     {"/opt/data", unless(ownPath, "%q is not a path that hone expands", "write the absolute path, or ./ before a file name with ~")},
	"percent":  {"1%", unless(percent, "%q is not a percentage", `write a percentage below 100, such as "1%"`)},
	"program":  {"./check.sh", below("", "%q is not the path of a file in the project", `write a path relative to the root of the git repository, such as "./check.sh", or null for none`)},
	"priced":   {"openai/gpt-5", unless(wholeName, notModel, named)},                                                                         // another would be the price of none
	"setting":  {"NO_COLOR=1", unless(setting, "it is not the name of a variable, = and a value", `write NAME=value, such as "NO_COLOR=1"`)}, // whose value may be secret
	"url":      {"", urlProblem},
	"variable": {"DATABASE_URL", unless(variable, "it is not only the name of a variable", `write names without values, such as "DATABASE_URL"`)},
}

var (
	otherGlob = lazyregexp.New(`^[! \t]|[ \t]$|(^|[^\\])(\[:[a-z]+:\]|\*\*\*)`)

	bare     = lazyregexp.New(`^[A-Za-z0-9_-]+$`)
	name     = lazyregexp.New(`^[A-Za-z0-9_-]{1,60}$`)
	variable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	setting  = lazyregexp.New(`(?s)^[A-Za-z_][A-Za-z0-9_]*=`)
	file     = lazyregexp.New(`[^-]|--`)
	number   = lazyregexp.New(`^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?$`)
	percent  = lazyregexp.New(`^\d{1,2}(\.\d*)?%?$`)
	printed  = lazyregexp.New(`^[\pL\pM\pN\pP\pS ]*$`)
	ownPath  = lazyregexp.New(`^([^~]|~/|~$)`) // not in the home of another user

	// A name without a provider means what it means after -m.
	modelName  = lazyregexp.New(`^[^\s,/]+(/[^\s,]+)?$`)
	modelNames = lazyregexp.New(`^\s*[^\s,/]+(/[^\s,]+)?\s*(,\s*[^\s,/]+(/[^\s,]+)?\s*)*$`)
	wholeName  = lazyregexp.New(`^[^\s,/]+/[^\s,]+$`)
)

const notModel, named = "%q is not the name of a model", `write "provider/name", such as "openai/gpt-5"`

// name is that of a rule, in a tag. An empty problem means that all is well.
func textProblem(name, s string) (problem, hint string) {
	switch {
	case name == "duration":
	case s == "", name != "argument" && strings.TrimSpace(s) == "":
		return "an empty string is not allowed", "write some text, or remove it"
	case strings.ContainsRune(s, 0):
		return "it contains a NUL character", "remove it"
	}
	if find := rules[name].find; find != nil {
		return find(s)
	}
	if choices := choicesOf(name); choices != nil && !slices.Contains(choices, s) {
		return fmt.Sprintf("%q is not one of the choices", s), stringHint(name)
	}
	return "", ""
}

// check returns a value of a file as one of the row's type, or what is wrong with it and what the
// user should write. KEY stands in the hint for its name. An empty problem means that all is well.
func (r *Row) check(v any) (value any, problem, hint string) {
	value, ok := r.convert(v)
	if !ok {
		what, hint := r.expected()
		return nil, "it is not " + what, hint
	}
	problem, hint = r.problem(value)
	return value, problem, hint
}

func (r *Row) convert(v any) (value any, ok bool) {
	size := strings.HasPrefix(r.Valid, "size")
	switch v := v.(type) {
	case []any:
		switch r.standard.(type) {
		case []string:
			return listOf[string](v)
		case []int:
			return listOf[int64](v)
		}
	case int64:
		switch r.standard.(type) {
		case int:
			return int(v), true
		case int64:
			return v, !size || v > 0 || v == 0 && r.Valid == "size"
		case float64:
			return float64(v), true
		}
	case string:
		if size {
			n, err := ParseSize(v)
			return n, err == nil || r.Valid == "size" && strings.TrimSpace(v) == "0"
		}
		if _, ok := r.standard.(time.Duration); ok {
			if d, err := time.ParseDuration(v); err == nil && d > 0 {
				return d, true
			}
			return v, true // problem says what is wrong
		}
	}
	return v, reflect.TypeOf(v) == reflect.TypeOf(r.standard)
}

func listOf[T any](values []any) (any, bool) {
	list := make([]T, len(values))
	for i, v := range values {
		var ok bool
		if list[i], ok = v.(T); !ok {
			return nil, false
		}
	}
	return list, true
}

func (r *Row) expected() (what, hint string) {
	switch r.standard.(type) {
	case bool:
		return "a boolean", "write true or false, without quotes"
	case float64:
		return "a number", "write US dollars as a number, such as 2.50"
	case time.Duration:
		return "a string", DurationHint
	case []string:
		return "a list of strings", fmt.Sprintf("write a list, such as KEY = [%q]", rules[r.Valid].example)
	case []int:
		return "a list of whole numbers", "write a list, such as KEY = [0, 1]"
	case string:
		return "a string", stringHint(r.Valid)
	}
	switch {
	case strings.HasPrefix(r.Valid, "size"):
		return "a size", `write a number of bytes, or a number with its unit, such as "4GB"`
	case r.Valid == "positive":
		return "a whole number", "write a whole number greater than 0"
	}
	return "a whole number", "write 0 or a greater whole number"
}

func (r *Row) problem(value any) (problem, hint string) {
	switch value := value.(type) {
	case string:
		if _, ok := r.standard.(time.Duration); ok {
			return textProblem("duration", value)
		}
		return textProblem(r.Valid, value)
	case []string:
		for _, text := range value {
			if problem, hint := textProblem(r.Valid, text); problem != "" {
				return problem, hint
			}
		}
	case time.Duration:
		return durationProblem(value.String())
	}
	var n float64
	switch v := reflect.ValueOf(value); {
	case v.CanInt():
		n = float64(v.Int())
	case v.CanFloat():
		n = v.Float()
	default:
		return "", ""
	}
	switch _, hint = r.expected(); {
	case n < 0, n == 0 && r.Valid == "positive":
		return fmt.Sprintf("%v is too small", value), hint
	case math.IsNaN(n), math.IsInf(n, 0):
		return fmt.Sprintf("%v is not a finite number", value), hint
	}
	return "", ""
}

// DurationHint says how a duration is written.
const DurationHint = `write a number with its unit, such as "90s", "10m" or "1h30m"`

func durationProblem(s string) (problem, hint string) {
	switch d, err := time.ParseDuration(s); {
	case err != nil:
		return fmt.Sprintf("%q is not a duration", s), DurationHint
	case d <= 0:
		return fmt.Sprintf("%q is not greater than 0", s), DurationHint
	}
	return "", ""
}

// choicesOf returns the texts of a rule such as "ask|none|all", or "bork|" for one alone.
func choicesOf(rule string) []string {
	if !strings.Contains(rule, "|") {
		return nil
	}
	return strings.Split(strings.TrimSuffix(rule, "|"), "|")
}

func stringHint(rule string) string {
	choices := choicesOf(rule)
	switch last := len(choices) - 1; last {
	case -1:
		return "write it in double quotes"
	case 0:
		return fmt.Sprintf("write %q", choices[0])
	default:
		return fmt.Sprintf(`write "%s" or %q`, strings.Join(choices[:last], `", "`), choices[last])
	}
}

func unless(form *lazyregexp.Regexp, problem, hint string) func(string) (string, string) {
	return func(s string) (string, string) {
		if form.MatchString(s) {
			return "", ""
		}
		return strings.ReplaceAll(problem, "%q", strconv.Quote(s)), hint
	}
}

// urlProblem also refuses a URL with what may be a secret, because the file shows it to everybody.
func urlProblem(s string) (problem, hint string) {
	u, err := url.Parse(s)
	_, secrets := MaskAddress(s)
	switch {
	case err != nil, u.User == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == ""):
		return "it is not an http or https URL", `write one, such as "http://localhost:11434/v1"`
	case u.User != nil, len(secrets) > 0:
		return "the URL contains a user name, a password or a query", "remove it, and set the key variable of the provider, or the variable of its address"
	}
	return "", ""
}

// The path follows a prefix, and does not leave it.
func below(prefix, problem, hint string) func(string) (string, string) {
	return func(s string) (string, string) {
		rest, ok := strings.CutPrefix(s, prefix)
		if clean := path.Clean(rest); !ok || clean == "." || path.IsAbs(rest) || !filepath.IsLocal(filepath.FromSlash(clean)) {
			return fmt.Sprintf(problem, s), hint
		}
		return "", ""
	}
}

func globProblem(pattern string) (problem, hint string) {
	const relative = `write it relative to the root, such as "docs/**"`
	parts := strings.Split(strings.ReplaceAll(pattern, `\`, "/"), "/")
	switch {
	case otherGlob.MatchString(pattern):
		return fmt.Sprintf("%q would match nothing: globs have no ! before them, no blank at an end, no [:class:] and no ***", pattern), `write it without; \! and [ ] stand for the characters themselves`
	case strings.HasPrefix(pattern, "/") || filepath.IsAbs(filepath.FromSlash(pattern)):
		return fmt.Sprintf("%q is an absolute path", pattern), relative
	case slices.Contains(parts, ".."):
		return fmt.Sprintf(`%q contains ".."`, pattern), relative
	case !doublestar.ValidatePattern(pattern):
		return fmt.Sprintf("%q is not a valid glob", pattern), `close its brackets and braces, or write \[ and \{ for the characters themselves`
	}
	return "", ""
}

// loopbackProblem accepts http, a loopback host and a port, because a verifier's wall allows
// only these (ruling A13).
func loopbackProblem(s string) (problem, hint string) {
	host, isHTTP := strings.CutPrefix(strings.ToLower(s), "http://")
	at, err := netip.ParseAddrPort(strings.Replace(host, "localhost:", "127.0.0.1:", 1))
	if !isHTTP || err != nil || !at.Addr().IsLoopback() || at.Addr().Zone() != "" || at.Port() == 0 {
		return "it is not the http URL of a port of this machine", `write it without a path, such as "http://localhost:3000"`
	}
	return "", ""
}

var sizeText = lazyregexp.New(`^([0-9]+)\s*([kmgt]?)(i?b)?$`)

// ParseSize returns the number of bytes that a text such as "4GB", "512 MiB",
// "64k" or "1048576" means. The units are powers of 1024 in every spelling, as
// is usual for memory. A size of 0, or one that does not fit, is an error.
func ParseSize(s string) (int64, error) {
	m := sizeText.FindStringSubmatch(strings.ToLower(strings.TrimSpace(s)))
	if m == nil {
		return 0, fmt.Errorf("%q is not a size", s)
	}
	unit := int64(1) << (10 * (1 + strings.Index("kmgt", cmp.Or(m[2], "-"))))
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is not a size", s)
	}
	return n * unit, nil
}
