package check

import (
	"regexp"
	"strings"
)

// The places where systems have their temporary files, up to and with the
// separator behind them.
var (
	unixTemp    = regexp.MustCompile(`^(?:(?:/private)?(?:/var)?/tmp|(?:/private)?/var/folders/[^/\s]{1,8}/[^/\s]{1,64}/[TC0]|/dev/shm)/+`)
	windowsTemp = regexp.MustCompile(`(?i)^[a-z]:[\\/]+(?:users[\\/]+[^\\/:*?"<>|+\r\n]{1,64}[\\/]+appdata[\\/]+local[\\/]+|windows[\\/]+)?(?:temp|tmp)[\\/]+`)
	namedTemp   = regexp.MustCompile(`^(?:%TE?MP%|\$\{?TE?MP(?:DIR)?\}?)[\\/]+`)
)

// randomPart are names that programs make up, wherever the folder lies: those
// of go build and go test, mktemp, pytest and hone's own walls.
var randomPart = regexp.MustCompile(`^[\\/]{1,4}(?:go-(?:build|link-)\d{5,20}|(?:Test|Benchmark|Fuzz|Example)[^\\/\s]{0,200}?\d{5,20}[\\/]{1,4}\d{3}|tmp\.[A-Za-z0-9]{6,20}|pytest-\d{1,9}|run-\d{8}-\d{6}-[0-9a-f]{1,16}-\d{1,20})`)

// tempFolder is the length of a place for temporary files that a text begins
// with, and of the name below it; 0 if it does not.
func tempFolder(text string) int { return below(text, unixTemp) }

// tempVariable does the same for a place that is named by a variable.
func tempVariable(text string) int { return below(text, namedTemp) }

// tempDrive does the same for a path with a drive.
func tempDrive(text string) int { return below(text, windowsTemp) }

// isDrive reports whether a text begins with a drive.
func isDrive(text string) bool { return text[1] == ':' && (text[2] == '\\' || text[2] == '/') }

// below is the length of what an expression matches with the name behind it.
func below(text string, place *regexp.Regexp) int {
	m := place.FindStringIndex(text)
	if m == nil {
		return 0
	}
	if n := randomName(text[m[1]-1:]); n > 0 {
		return m[1] - 1 + n
	}
	name := nameLen(text[m[1]:])
	if name == 0 {
		return 0
	}
	return m[1] + name
}

// randomName is the length of a separator that a text begins with and of the
// made-up name behind it; 0 if there is none.
func randomName(text string) int {
	name := strings.TrimLeft(text[:min(len(text), 5)], `\/`)
	if name == "" || strings.IndexByte("gTBFEtpr", name[0]) < 0 {
		return 0
	}
	m := randomPart.FindStringIndex(text)
	if m == nil || nameLen(text[m[1]:]) > 0 {
		return 0
	}
	return m[1]
}

// nameLen is the length of the name that a path goes on with. Dots at its end
// are a sentence's.
func nameLen(text string) int {
	n := strings.IndexFunc(text, func(r rune) bool { return r < 0x80 && !isPath(byte(r)) || r == '/' || r == '\\' })
	if n < 0 {
		n = len(text)
	}
	return len(strings.TrimRight(text[:n], "."))
}
