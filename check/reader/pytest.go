package reader

import "strings"

// pytestMessage returns the message of a failure: the first line that pytest marks with E,
// or the last one of a syntax error, which starts with its place.
func pytestMessage(lines []string) string {
	message, last := "", false
	for _, line := range lines {
		said, ok := strings.CutPrefix(line, "E   ")
		if !ok {
			continue
		}
		said = strings.TrimSpace(said)
		if message == "" {
			last = strings.HasPrefix(said, "File \"")
		}
		if message == "" || last && said != "" {
			message = said
		}
	}
	return message
}
