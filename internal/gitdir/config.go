package gitdir

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Setting is one setting of a file of git's.
type Setting struct {
	Section string // in lower case
	Sub     string // the subsection; empty if there is none
	Name    string // in lower case
	Value   string // empty also for a name without a value, which means true
}

// Settings returns the settings of a file of git's, in order. ok is false if git would
// refuse the file; then the settings are those before the place.
func Settings(text string) (all []Setting, ok bool) {
	p := configParser{rest: strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")}
	var at Setting
	for p.rest != "" {
		switch c := p.next(); {
		case c == '#' || c == ';':
			_, p.rest, _ = strings.Cut(p.rest, "\n")
		case isSpace(c):
		case c == '[':
			if at.Section, at.Sub, ok = p.section(); !ok {
				return all, false
			}
		case isLetter(c):
			at.Name = string(c) + p.word("-")
			p.rest = strings.TrimLeft(p.rest, " \t")
			at.Name, at.Value, ok = strings.ToLower(at.Name), "", true
			switch c := p.next(); c {
			case '\n':
			case '=':
				at.Value, ok = p.value()
			default:
				ok = false
			}
			if !ok {
				return all, false
			}
			all = append(all, at)
		default:
			return all, false
		}
	}
	return all, true
}

type configParser struct{ rest string }

// The end counts as a newline.
func (p *configParser) next() byte {
	if p.rest == "" {
		return '\n'
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	return c
}

func (p *configParser) word(also string) string {
	n := 0
	for n < len(p.rest) && (isLetter(p.rest[n]) || p.rest[n] >= '0' && p.rest[n] <= '9' || strings.IndexByte(also, p.rest[n]) >= 0) {
		n++
	}
	word := p.rest[:n]
	p.rest = p.rest[n:]
	return word
}

// Sections are [a], [a.sub] or [a "sub"].
func (p *configParser) section() (name, sub string, ok bool) {
	name, sub, _ = strings.Cut(strings.ToLower(p.word("-.")), ".")
	c := p.next()
	if c == ']' {
		return name, sub, true
	}
	p.rest = strings.TrimLeft(p.rest, " \t")
	if c != ' ' && c != '\t' || p.next() != '"' {
		return "", "", false
	}
	var quoted strings.Builder
	for {
		switch c := p.next(); c {
		case '\n':
			return "", "", false
		case '"':
			return name, quoted.String(), p.next() == ']'
		case '\\':
			quoted.WriteByte(p.next())
		default:
			quoted.WriteByte(c)
		}
	}
}

func (p *configParser) value() (string, bool) {
	var value, space strings.Builder
	for quoted := false; ; {
		c := p.next()
		switch {
		case c == '\n':
			return value.String(), !quoted
		case !quoted && isSpace(c):
			if value.Len() > 0 {
				space.WriteByte(c)
			}
			continue
		case !quoted && (c == '#' || c == ';'):
			_, p.rest, _ = strings.Cut(p.rest, "\n")
			return value.String(), true
		}
		value.WriteString(space.String())
		space.Reset()
		switch c {
		case '"':
			quoted = !quoted
		case '\\':
			switch c = p.next(); c {
			case '\n':
			case 't', 'b', 'n':
				value.WriteByte(map[byte]byte{'t': '\t', 'b': '\b', 'n': '\n'}[c])
			case '\\', '"':
				value.WriteByte(c)
			default:
				return "", false
			}
		default:
			value.WriteByte(c)
		}
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// Guarded are the names in a git directory that decide what git runs and where it looks, and what it
// does when the user continues a rebase or the like.
func Guarded() []string {
	return append(continued(), []string{
		"config", "config.worktree", "hooks", "info", "commondir", "gitdir",
		filepath.Join("objects", "info", "alternates"), filepath.Join("objects", "info", "http-alternates"),
	}...)
}

func continued() []string { return []string{"rebase-merge", "rebase-apply", "sequencer", "rr-cache"} }

// Continues reports whether a name in a git directory says what the user has begun. To git it means
// that even if it is empty.
func Continues(name string) bool { return slices.Contains(continued(), name) }

// notPlain returns why a git directory, or a .git file or symlink, could make git run a
// program; empty if it is as git clone, git init, git worktree and git submodule leave it.
// Found are all repositories of the tree: what is named elsewhere is not protected. The
// settings and hooks of a known git directory are the user's.
func notPlain(path string, found []string, known func(dir string) bool) string {
	dir := path
	switch mode := modeOf(path); {
	case mode&fs.ModeSymlink != 0:
		dir = real(path)
	case mode.IsRegular():
		dir = real(Link(path))
	}
	common := real(Common(dir))
	for _, named := range []string{dir, common} {
		if !slices.Contains(found, named) {
			return "it names a directory that is not a repository of the tree"
		}
	}
	if why := settingNotPlain(filepath.Join(dir, "config.worktree"), dir, known(dir)); why != "" {
		return why
	}
	if why := settingNotPlain(filepath.Join(common, "config"), dir, known(common)); why != "" || known(common) {
		return why
	}
	hooks := filepath.Join(common, "hooks")
	if mode := modeOf(hooks); mode != 0 && !mode.IsDir() {
		return "its hooks are elsewhere"
	}
	entries, err := os.ReadDir(hooks)
	if err != nil && !os.IsNotExist(err) {
		return "its hooks cannot be read"
	}
	for _, h := range entries {
		if filepath.Ext(h.Name()) != ".sample" {
			return "it has the hook " + h.Name()
		}
	}
	return ""
}

// It returns what git clone does not write. In the user's settings that is only what has another meaning for another work tree.
func settingNotPlain(file, dir string, users bool) string {
	info, err := os.Lstat(file)
	if os.IsNotExist(err) {
		return ""
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() >= maxRead {
		return filepath.Base(file) + " is not a file of settings"
	}
	text, err := read(file)
	if err != nil {
		return filepath.Base(file) + " cannot be read"
	}
	all, ok := Settings(text)
	for _, s := range all {
		if users && (s.Section != "core" || s.Name != "hookspath" || filepath.IsAbs(s.Value) || strings.HasPrefix(s.Value, "~")) {
			continue
		}
		if !isPlain(s, dir) {
			return fmt.Sprintf("it sets %s.%s", s.Section, s.Name)
		}
	}
	if !ok && !users {
		return filepath.Base(file) + " cannot be read"
	}
	return ""
}

// git clone or git init writes such a setting, or it only says who the user is or what advice git gives.
func isPlain(s Setting, dir string) bool {
	if s.Section == "advice" || s.Section == "extensions" {
		return true
	}
	switch s.Section + "." + s.Name {
	case "core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase", "core.precomposeunicode", "core.symlinks",
		"core.sparsecheckout", "core.sparsecheckoutcone", "remote.url", "remote.fetch", "remote.tagopt", "remote.mirror", "remote.promisor", "remote.partialclonefilter",
		"branch.remote", "branch.merge", "branch.rebase", "submodule.url", "submodule.active", "user.name", "user.email":
		return true
	case "core.worktree": // a submodule's, whose files name it
		tree := Path(s.Value, dir)
		return tree != "" && Same(Link(filepath.Join(tree, ".git")), dir)
	}
	return false
}

// Same reports whether two paths lead to the same file.
func Same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

func real(path string) string {
	path, _ = filepath.EvalSymlinks(path)
	return path
}
