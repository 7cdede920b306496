package secret

import (
	"strings"
	"unicode"
)

// Variable returns the secret values in an environment variable that commands get, so
// that they can be Values of a [Guard]: the value, unless it could be part of ordinary
// text, and the logins, tokens and named secrets in it. They are not sorted and may
// repeat.
//
// If the name does not mean a secret, lists of paths and options of programs are ordinary
// text too, and so are the values of names that mean something else, such as AWS_REGION.
func Variable(name, value string) []string {
	c := collector{}
	for _, s := range findAll(formats(), value) {
		c.addLines(value[s.start:s.end])
	}
	c.addPairs(value)
	c.addLogins(value)
	c.addSchemes(value)
	switch {
	case NamesSecret(name):
		c.addNamed(name, value)
	case isPaths(value):
	default:
		c.addGenerated(value)
		if !namesOther(nameWords(name)) && !strings.HasPrefix(value, "-") && !isOrdinary(value) {
			c.add(value)
			c.addParts(value)
		}
	}
	return c.values
}

// addParts adds the parts of a value between the characters that JSON escapes. In plain
// text the whole value is not found: it could be the syntax of a JSON text.
func (c *collector) addParts(value string) {
	special := func(r rune) bool { return r == '"' || r == '\\' || unicode.IsControl(r) }
	if !strings.ContainsFunc(value, special) {
		return
	}
	for part := range strings.FieldsFuncSeq(value, special) {
		if !isOrdinary(part) && !strings.HasPrefix(part, "-----") {
			c.add(part)
		}
	}
}

func isPaths(value string) bool {
	separator := ":"
	if strings.Contains(value, ";") {
		separator = ";"
	}
	for path := range strings.SplitSeq(value, separator) {
		if path != "" && (!location.MatchString(path) || strings.Contains(path, "://")) {
			return false
		}
	}
	return value != ""
}
