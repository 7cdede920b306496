package check

import (
	"strings"

	"hone/internal/lazyregexp"
)

// The directories of temporary files, including the separator that follows
// them.
var (
	unixTemp    = lazyregexp.New(`^(?:(?:/private)?(?:/var)?/tmp|(?:/private)?/var/folders/[^/\s]{1,8}/[^/\s]{1,64}/[TC0]|/dev/shm)/+`)
	windowsTemp = lazyregexp.New(`(?i)^[a-z]:[\\/]+(?:users[\\/]+[^\\/:*?"<>|+\r\n]{1,64}[\\/]+appdata[\\/]+local[\\/]+|windows[\\/]+)?(?:temp|tmp)[\\/]+`)
	namedTemp   = lazyregexp.New(`^(?:%TE?MP%|\$\{?TE?MP(?:DIR)?\}?)[\\/]+`)
)

// randomPart matches names that programs generate, in any directory: those of
// go build and go test, mktemp, pytest and hone's own walls.
var randomPart = lazyregexp.New(`^[\\/]{1,4}(?:go-(?:build|link-)\d{5,20}|(?:Test|Benchmark|Fuzz|Example)[^\\/\s]{0,200}?\d{5,20}[\\/]{1,4}\d{3}|tmp\.[A-Za-z0-9]{6,20}|pytest-\d{1,9}|run-\d{8}-\d{6}-[0-9a-f]{1,16}-\d{1,20})`)

// tempFolder returns the length of the temporary directory that a text starts
// with, including the name below it, or 0.
func tempFolder(text string) int { return tempLen(text, unixTemp) }

// tempVariable is tempFolder for a directory given by a variable.
func tempVariable(text string) int { return tempLen(text, namedTemp) }

// tempDrive is tempFolder for a path with a drive letter.
func tempDrive(text string) int { return tempLen(text, windowsTemp) }

// isDrive reports whether a text starts with a drive letter.
func isDrive(text string) bool { return text[1] == ':' && (text[2] == '\\' || text[2] == '/') }

// tempLen returns the length of what place matches, including the name that
// follows.
func tempLen(text string, place *lazyregexp.Regexp) int {
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

// randomName returns the length of a separator and the generated name after it,
// or 0.
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

// nameLen returns the length of the path component that a text starts with.
// Trailing dots belong to the sentence.
func nameLen(text string) int {
	n := strings.IndexFunc(text, func(r rune) bool { return r < 0x80 && !isPath(byte(r)) || r == '/' || r == '\\' })
	if n < 0 {
		n = len(text)
	}
	return len(strings.TrimRight(text[:n], "."))
}
