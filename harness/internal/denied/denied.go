// Package denied guesses what a command that failed could not reach because of its walls: a
// path, a program, a variable or a secret file that exists outside them.
package denied

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hone/internal/config"
	"hone/internal/lazyregexp"
	"hone/internal/listing"
	"hone/sandbox"
	"hone/sandbox/workshop"
)

// Command is a command that failed behind walls.
type Command struct {
	Policy    sandbox.Policy
	Workspace string               // what a loop hides of it is hidden on purpose, such as src/ from the verifier of phase
	Root      string               // the tree, in the workspace or a copy of it
	Home      string               // the directory with the commands' home
	Dir       string               // in which it ran
	Env       []string             // its environment
	Environ   []string             // the user's
	Secrets   []listing.SecretFile // the files of the tree that are hidden because they look secret
	Keys      []string             // the variables that commands never get
}

var (
	unreached = lazyregexp.New(`(?i)\b(no such file or directory|permission denied|read-only file system|enoent|eacces|erofs)\b`)
	notFound  = lazyregexp.New(`(?:^|[\s:])([\w.+-]+): (?:command )?not found|exec: "([\w.+-]+)": executable file not found|env: [‘']([\w.+-]+)[’']: No such file`)
)

const maxLines = 1000

// variable matches how an output names a variable: with an underscore in it, as the
// shell writes it, or in a sentence that says that it is missing.
var variable = lazyregexp.New(`\b([A-Z][A-Z0-9]*_[A-Z0-9_]*[A-Z0-9])\b|\$\{?([A-Z_][A-Z0-9_]+)\b|\b(?:set|export) ([A-Z_][A-Z0-9_]+)\b|` +
	`\b([A-Z_][A-Z0-9_]+)(?:: (?:unbound variable|parameter (?:null or )?not set)|["'` + "`" + `]? (?:is )?(?:not set|required|missing|undefined|unset)\b| must be set| environment variable (?:is )?(?:not set|required|missing))|KeyError: '([A-Z_][A-Z0-9_]+)'`)

// neverAdvised are variables that lead to the user's own session, which commands
// should not get.
var neverAdvised = []string{"SSH_AUTH_SOCK", "SSH_AGENT_PID", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "GPG_TTY", "XAUTHORITY"}

// Notes returns notes for the user, by cause: each says what the command seems to have
// missed behind the walls, and how to give it that. The cause of a note about variables
// or secret files contains their names. Notes can miss a cause, or name a wrong one.
func (c Command) Notes(output string) map[string]string {
	notes := map[string]string{}
	files := c.neededFiles(output)
	if len(files) > 0 {
		notes["secret "+strings.Join(c.Hidden(output), " ")] = secretNote(files, len(c.Secrets)-len(files))
	}
	var names []string
	for _, line := range lastLines(output) {
		how := unreached.FindString(line)
		if how != "" && len(files) == 0 && notes["path"] == "" {
			for _, path := range pathsIn(line) {
				if !filepath.IsAbs(path) {
					path = filepath.Join(c.Dir, path)
				}
				if notes["path"] = c.openingNote(filepath.Clean(path), how); notes["path"] != "" {
					break
				}
			}
		}
		for _, match := range notFound.FindAllStringSubmatch(line, -1) {
			if notes["program"] == "" {
				notes["program"] = c.programNote(strings.Join(match[1:], ""))
			}
		}
		for _, match := range variable.FindAllStringSubmatch(line, -1) {
			name := strings.Join(match[1:], "")
			if sandbox.EnvValue(c.Environ, name) != "" && sandbox.EnvValue(c.Env, name) == "" &&
				!slices.Contains(slices.Concat(c.Keys, neverAdvised, names), name) {
				names = append(names, name)
			}
		}
	}
	if len(names) > 0 {
		notes["variable "+strings.Join(names, " ")] = note("the variable "+strings.Join(names, " and the variable "), "commands do not get", "env", names...)
	}
	maps.DeleteFunc(notes, func(_, note string) bool { return note == "" })
	return notes
}

func note(what, how, key string, values ...string) string {
	var quoted []string
	for _, v := range values {
		quoted = append(quoted, strconv.Quote(v))
	}
	return fmt.Sprintf("a command seems to need %s, which %s behind the walls; allow it with %s = [%s] in [sandbox] of %s",
		what, how, key, strings.Join(quoted, ", "), config.HonePath)
}

func lastLines(output string) []string {
	lines := strings.Split(output, "\n")
	return lines[max(0, len(lines)-maxLines):]
}

// It is empty if the walls do not hide the path, or should. how is the message about it.
func (c Command) openingNote(path, how string) string {
	real, err := filepath.EvalSymlinks(path)
	missing := err != nil
	if missing {
		path = filepath.Dir(path)
		if real, err = filepath.EvalSymlinks(path); err != nil {
			return ""
		}
	}
	p := c.Policy
	within := func(lists ...[]string) bool {
		return slices.ContainsFunc(slices.Concat(lists...), func(top string) bool { return sandbox.Within(top, path) || sandbox.Within(top, real) })
	}
	shop := workshop.Workshop{Root: c.Root, Home: c.Home, Environ: c.Environ}
	system := within([]string{"/proc", "/sys", "/dev"}) || filepath.Dir(real) == real
	if system || within(p.Write, p.Hide, []string{c.Workspace}) || sandbox.Within(real, c.Root) || shop.Secret(path) {
		return ""
	}
	switch denied := !strings.HasPrefix(strings.ToLower(how), "no such") && !strings.EqualFold(how, "enoent"); {
	case denied && within(p.Read) && writable(real), denied && missing && writable(real):
		return note(path, "is read-only", "write", path)
	case !missing && !within(p.Read) && readable(real):
		return note(path, "is not visible", "read", path)
	}
	return ""
}

func (c Command) programNote(name string) string {
	if _, err := sandbox.FindProgram(name, c.Env); err == nil {
		return ""
	}
	path, err := sandbox.FindProgram(name, c.Environ)
	if err != nil || sandbox.Within(c.Root, path) {
		return ""
	}
	return note("the program "+name, "is not visible", "read", filepath.Dir(path))
}

func pathsIn(line string) []string {
	return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\"'`‘’“”:,;()<>|[]{}=", r) })
}

func readable(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	return f.Close() == nil
}
