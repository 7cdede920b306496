package allow

import (
	"fmt"
	"regexp"
	"strings"

	"hone/internal/lazyregexp"
)

// harmlessSed matches scripts that only print and change lines. It accepts only
// regular expressions that end at the same place for every sed, and only common
// delimiters. It accepts no command that reads, writes or runs, such as w, r and e.
var harmlessSed = lazyregexp.New(sedGrammar())

func sedGrammar() string {
	const (
		pattern     = `%[1]s(?:[^\\\n[%[1]s]|\\[^\n]|\[\^?\]?(?:[^]\\\n[%[1]s]|\[:[a-z]+:\]|\\[nt])*\])*%[1]s`
		replacement = `(?:[^\\\n%[1]s]|\\[\s\S])*%[1]s`
		comment     = `#[^\n]*(?:\n|\z)`
		end         = `[ \t]*(?:[;\n}]|` + comment + `|\z)`
	)
	commands := []string{`[=FdDgGhHnNpPxz]`, `[lLqQ][ \t]*[0-9]*`, `[:btT][ \t]*[A-Za-z0-9_]*`, `[aic](?:\\\n?)?[^\\\n]*`}
	for _, delimiter := range []string{"/", "|", ",", "#", "@", "%", "!", "_"} {
		commands = append(commands, fmt.Sprintf("s"+pattern+replacement+"[gpiImM0-9]*|y%[1]s"+replacement+replacement, regexp.QuoteMeta(delimiter)))
	}
	match := fmt.Sprintf(pattern, "/") + "[IM]*"
	address := `(?:(?:[0-9]+(?:~[0-9]+)?|\$|` + match + `)(?:[ \t]*,[ \t]*(?:[+~]?[0-9]+|\$|` + match + `))?[ \t]*)?(?:![ \t]*)?`
	return `\A(?:[ \t\n;}]|` + comment + `|` + address + `(?:\{|(?:` + strings.Join(commands, "|") + `)` + end + `))*\z`
}

var (
	awkNames = lazyregexp.New(`system|getline|ARGV|ARGC|@|\\\n`)
	// awkString matches a string, or a text between two slashes, which is a
	// regular expression or stands between two divisions. From a comment, or from
	// where this is unclear, it matches the rest of the script.
	awkString = lazyregexp.New(`(?s)("(?:[^"\\\n]|\\.)*")|(/(?:[^/"\\\n[]|\\.|\[\^?[^]/"\\\n[]+\])*/|[/#"].*)`)
	awkParens = lazyregexp.New(`\([^()"/#\n]*\)`)
)

// harmlessAwk reports whether a script only prints. It searches for names that run
// programs or change the input, and for a pipe or a redirect after print. In
// parentheses > is a comparison.
func harmlessAwk(script string) bool {
	code := strings.ReplaceAll(awkString.ReplaceAllString(script, "$2"), "||", "")
	for awkParens.MatchString(code) {
		code = awkParens.ReplaceAllString(code, "")
	}
	_, printed, _ := strings.Cut(code, "print")
	return !awkNames.MatchString(script) && !strings.ContainsAny(printed, "|>")
}
