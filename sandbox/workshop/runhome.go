package workshop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hone/internal/gitdir"
	"hone/sandbox"
)

// What is there already stays: walls of another kind were tried before for the same commands.
func (w *Workshop) makeHome() error {
	dirs := []string{w.inHome(""), filepath.Join(w.Home, tmpDir), filepath.Join(w.Home, asideDir), w.inHome(".config/git")}
	for _, v := range w.overlays {
		if sandbox.Within(w.inHome(""), v.Path) { // others need no directory
			dirs = append(dirs, v.Path)
		}
	}
	links := w.links
	for _, name := range w.Links {
		name = strings.TrimPrefix(name, "~/")
		links = append(links, link{name, w.homePath(name)})
	}
	for _, l := range links {
		dirs = append(dirs, filepath.Dir(w.inHome(l.Name)))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	// Placeholders exist while a command runs; git add does not add them.
	err := os.WriteFile(w.inHome(".config/git/ignore"), []byte("/.config/hone.toml\n/.config/bork.json\n"), 0o600)
	if err == nil {
		err = os.WriteFile(w.inHome(".gitconfig"), []byte(w.gitSettings()), 0o600)
	}
	if err != nil {
		return err
	}
	for _, l := range links {
		if err := os.Symlink(l.Target, w.inHome(l.Name)); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	// Some programs ask whether they may write, and do not try.
	return errors.Join(w.As.Own(w.inHome("")), w.As.Own(filepath.Join(w.Home, tmpDir)))
}

// Commands commit in the user's name, in repositories of any owner: walls replace git's own check of the owner. No other
// setting of the user is copied.
func (w *Workshop) gitSettings() string {
	text := "[safe]\n\tdirectory = *\n[gc]\n\tauto = 0\n"
	name, email := w.gitUser()
	text += gitUserSetting("name", name) + gitUserSetting("email", email)
	return text
}

func gitUserSetting(key, value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf("[user]\n\t%s = \"%s\"\n", key, gitQuoter.Replace(value))
}

var gitQuoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ", "\x00", "")

func (w *Workshop) gitUser() (name, email string) {
	files := []string{w.homePath(".config/git/config"), w.homePath(".gitconfig")}
	if dir := w.get("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		files[0] = filepath.Join(dir, "git", "config")
	}
	if file := w.get("GIT_CONFIG_GLOBAL"); file != "" {
		files = []string{file}
	}
	for _, file := range files {
		if !filepath.IsAbs(file) {
			continue
		}
		settings, _ := gitdir.Settings(gitdir.Read(file))
		for _, s := range settings { // the last of several wins
			switch s.Section + "." + s.Sub + "." + s.Name {
			case "user..name":
				name = strings.TrimSpace(s.Value)
			case "user..email":
				email = strings.TrimSpace(s.Value)
			}
		}
	}
	return name, email
}
