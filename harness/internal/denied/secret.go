package denied

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"hone/internal/config"
	"hone/internal/lazyregexp"
	"hone/internal/listing"
	"hone/internal/render"
	"hone/workspace/secret"
)

var unreadable = lazyregexp.New(`(?i)\b(?:permission denied|eacces|not readable|not found|no such file)\b|` +
	`\b(?:can(?:no|')?t|could(?: not|n't)|unable to|failed to) (?:open|read|access|find|load|resolve)\b`)

// Hidden returns the secret files that a command seems to have needed, as paths from
// the root; nil if there are none. It can miss a file, or name a wrong one.
func (c Command) Hidden(output string) (paths []string) {
	for _, file := range c.neededFiles(output) {
		paths = append(paths, file.Path)
	}
	return paths
}

// Their paths are from the root, with slashes.
func (c Command) neededFiles(output string) (files []listing.SecretFile) {
	var named []string
	for _, line := range lastLines(output) {
		if len(c.Secrets) > 0 && unreadable.MatchString(line) {
			named = append(named, pathsIn(line)...)
		}
	}
	for _, s := range c.Secrets {
		rel, err := filepath.Rel(c.Root, s.Path)
		isNamed := func(path string) bool { // perhaps from a directory below the command's own
			path = filepath.Clean(path)
			return path == s.Path || filepath.Join(c.Dir, path) == s.Path || strings.HasSuffix(s.Path, string(filepath.Separator)+path)
		}
		if err == nil && slices.ContainsFunc(named, isNamed) {
			s.Path = filepath.ToSlash(rel)
			files = append(files, s)
		}
	}
	return files
}

const maxNamed = 10

// others is the number of hidden files that the output does not name: compilers stop at the first.
func secretNote(f []listing.SecretFile, others int) string {
	var named, sendable []string
	for _, file := range f[:min(len(f), maxNamed)] {
		named = append(named, fmt.Sprintf("%s (%s)", file.Path, file.Why))
		if file.Why != secret.OwnKeyReason {
			sendable = append(sendable, file.Path)
		}
	}
	text := "a command seems to need " + strings.Join(named, ", ") + ", hidden because it looks secret"
	if len(named) > 1 {
		text = "a command seems to need files that are hidden because they look secret: " + strings.Join(named, ", ")
	}
	if len(sendable) > 0 {
		text += fmt.Sprintf(`; if that is wrong, add send = ["%s"] to [guard] of %s, which also lets models read it`, strings.Join(sendable, `", "`), config.HonePath)
	}
	if others += len(f) - len(named); others > 0 {
		text += fmt.Sprintf("; hone sandbox -v -- true lists %s", render.Count(others, "other hidden file"))
	}
	return text
}
