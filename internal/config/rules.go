package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"hone/internal/lazyregexp"

	"github.com/bmatcuk/doublestar/v4"
)

// rule is what the tag "valid" of a string demands.
type rule struct {
	example string // a string that it accepts, for a hint
	// find returns what is wrong with a string, and what the user should write. An empty
	// problem means that all is well; nil accepts any string.
	find func(s string) (problem, hint string)
}

var rules = map[string]rule{
	"agent":    {"gemini", unless(bare, "a valid name for an agent", "use letters, digits, - and _, as in [commands.gemini]")},
	"argument": {"gemini", nil},
	"case":     {"slug-spaces", unless(caseName, "a valid name for a case", "use at most 60 letters, digits, - and _, as in [cases.slug-spaces]")},
	"glob":     {"docs/**", globProblem},
	"home":     {"~/.gemini/settings.json", homeProblem},
	"line":     {"", lineProblem},
	"loopback": {"", loopbackProblem},
	"model":    {"openai/gpt-5", modelProblem},
	"models":   {"openai/gpt-5", modelsProblem},
	"path":     {"/opt/data", pathProblem},
	"priced":   {"openai/gpt-5", pricedProblem},
	"setting":  {"NO_COLOR=1", settingProblem},
	"url":      {"", urlProblem},
	"variable": {"DATABASE_URL", variableProblem},
}

var (
	bare     = lazyregexp.New(`^[A-Za-z0-9_-]+$`)
	caseName = lazyregexp.New(`^[A-Za-z0-9_-]{1,60}$`)
	variable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// name is that of a rule, in a tag. An empty problem means that all is well.
func textProblem(name, s string) (problem, hint string) {
	switch {
	case s == "", name != "argument" && strings.TrimSpace(s) == "":
		return "an empty string is not allowed", "write some text, or remove it"
	case strings.ContainsRune(s, 0):
		return "it contains a NUL character", "remove it"
	}
	if find := rules[name].find; find != nil {
		return find(s)
	}
	if choice := strings.Split(name, "|"); len(choice) > 1 && !slices.Contains(choice, s) {
		return fmt.Sprintf("%q is not one of the choices", s), stringHint(name)
	}
	return "", ""
}

func stringHint(rule string) string {
	choice := strings.Split(rule, "|")
	last := len(choice) - 1
	if last == 0 {
		return "write it in double quotes"
	}
	return fmt.Sprintf(`write "%s" or %q`, strings.Join(choice[:last], `", "`), choice[last])
}

// unless returns a rule that accepts the strings that match.
func unless(form *lazyregexp.Regexp, what, hint string) func(string) (string, string) {
	return func(s string) (string, string) {
		if form.MatchString(s) {
			return "", ""
		}
		return fmt.Sprintf("%q is not %s", s, what), hint
	}
}

func lineProblem(s string) (problem, hint string) {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return "it contains a character that cannot be printed", "write one line of plain text"
	}
	return "", ""
}

// modelProblem accepts a name without a provider as well, which means here what it means after -m.
func modelProblem(s string) (problem, hint string) {
	provider, name, given := strings.Cut(s, "/")
	if provider == "" || given && name == "" || strings.ContainsAny(s, " \t\r\n,") {
		return notModel(s)
	}
	return "", ""
}

func notModel(s string) (problem, hint string) {
	return fmt.Sprintf("%q is not the name of a model", s), `write "provider/name", such as "openai/gpt-5"`
}

// pricedProblem accepts the whole name of a model: another would be the price of none.
func pricedProblem(s string) (problem, hint string) {
	if !strings.Contains(s, "/") {
		return notModel(s)
	}
	return modelProblem(s)
}

func modelsProblem(s string) (problem, hint string) {
	for name := range strings.SplitSeq(s, ",") {
		if problem, hint = modelProblem(strings.TrimSpace(name)); problem != "" {
			return problem, hint
		}
	}
	return "", ""
}

// urlProblem also refuses a URL with a password, because hone shows the URL and
// records it in the journal.
func urlProblem(s string) (problem, hint string) {
	u, err := url.Parse(s)
	switch {
	case err != nil, u.User == nil && (u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == ""):
		return "it is not an http or https URL", `write one, such as "http://localhost:11434/v1"`
	case u.User != nil:
		return "the URL contains a user name or a password", "remove it, and set the key variable of the provider"
	}
	return "", ""
}

// pathProblem refuses the homes of other users.
func pathProblem(s string) (problem, hint string) {
	if s[0] == '~' && len(s) > 1 && s[1] != '/' {
		return fmt.Sprintf("%q does not begin with ~/", s), "write the absolute path, or ./ before a file name with ~"
	}
	return "", ""
}

func homeProblem(s string) (problem, hint string) {
	const example = `write a path that begins with ~/, such as "~/.gemini/settings.json"`
	below, ok := strings.CutPrefix(s, "~/")
	below = path.Clean(below)
	switch {
	case !ok:
		return fmt.Sprintf("%q is not in the home directory", s), example
	case below == ".":
		return fmt.Sprintf("%q is the whole home directory", s), "name the files and directories in it that the agent needs"
	case !filepath.IsLocal(filepath.FromSlash(below)):
		return fmt.Sprintf("%q is outside the home directory", s), example
	}
	return "", ""
}

// variableProblem does not repeat the value that the user wrote after a name.
func variableProblem(s string) (problem, hint string) {
	if name, _, assigned := strings.Cut(s, "="); assigned || !variable.MatchString(s) {
		return fmt.Sprintf("%q is not only the name of a variable", name), `write names without values, such as "DATABASE_URL"`
	}
	return "", ""
}

// settingProblem does not repeat the value of a variable.
func settingProblem(s string) (problem, hint string) {
	const example = `write NAME=value, such as "NO_COLOR=1"`
	name, _, assigned := strings.Cut(s, "=")
	switch {
	case !assigned:
		return `a string in the list has no "="`, example
	case !variable.MatchString(name):
		return fmt.Sprintf("%q is not the name of a variable", name), example
	}
	return "", ""
}

func globProblem(pattern string) (problem, hint string) {
	const relative = `write it relative to the root, such as "docs/**"`
	parts := strings.Split(strings.ReplaceAll(pattern, `\`, "/"), "/")
	switch {
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
	const example = `write the URL of the server, such as "http://localhost:3000"`
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" || u.Hostname() == "":
		return "it is not an http URL", example
	case u.User != nil:
		return "the URL contains a user name or a password", example
	case !strings.EqualFold(s, "http://"+u.Host):
		return "the URL does not end after the port", example
	case !loopback(u.Hostname()):
		return "the host is not a loopback address", "use localhost, 127.0.0.1 or [::1] as the host"
	case u.Port() == "":
		return "the port is missing", example
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
		return u.Port() + " is not a port", "write one from 1 to 65535"
	}
	return "", ""
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback() && ip.Zone() == ""
}
