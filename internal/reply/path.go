package reply

import "strings"

// Unquoted returns a path without a pair of backticks around it.
func Unquoted(name string) string {
	if len(name) > 2 && name[0] == '`' && name[len(name)-1] == '`' && strings.Count(name, "`") == 2 {
		return strings.TrimSpace(name[1 : len(name)-1])
	}
	return name
}
