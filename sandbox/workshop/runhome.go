package workshop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hone/sandbox"
)

// It works below the open directory of the run and never follows what a command may have left there: it removes a symlink in
// place of a directory.
func (w *Workshop) makeHome() error {
	run, err := os.OpenRoot(w.Home)
	if err != nil {
		return err
	}
	defer run.Close()
	for _, name := range []string{homeDir, tmpDir, asideDir} {
		if err := makeDir(run, name); err != nil {
			return err
		}
	}
	home, err := run.OpenRoot(homeDir)
	if err != nil {
		return err
	}
	defer home.Close()
	for _, l := range w.links {
		if err := makeLink(home, l); err != nil {
			return err
		}
	}
	if w.Net {
		if err := dropLinks(home); err != nil {
			return err
		}
	}
	for _, v := range w.overlays {
		name, err := filepath.Rel(w.inHome(""), v.Path)
		if err != nil || !filepath.IsLocal(name) {
			continue // an overlay outside the run's home needs no directory in it
		}
		if err := errors.Join(makeParents(home, name), makeDir(home, name)); err != nil {
			return err
		}
	}
	if err := ignorePlaceholders(home); err != nil {
		return err
	}
	if err := w.gitIdentity(home); err != nil {
		return err
	}
	for _, name := range w.Links {
		name = strings.TrimPrefix(name, "~/")
		if err := makeLink(home, link{name, w.homePath(name)}); err != nil {
			return err
		}
	}
	// Some programs ask whether they may write, and do not try.
	return errors.Join(w.As.Own(filepath.Join(w.Home, homeDir)), w.As.Own(filepath.Join(w.Home, tmpDir)))
}

// ignorePlaceholders writes git's list of ignored files. It contains the protected
// files in the workspace that have placeholders while a command runs if they do not
// exist, so that git add does not add these. It keeps an existing list.
func ignorePlaceholders(home *os.Root) error {
	list := filepath.FromSlash(".config/git/ignore")
	if err := makeParents(home, list); err != nil {
		return err
	}
	f, err := home.OpenFile(list, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString("/.config/hone.toml\n/.config/bork.json\n")
	return errors.Join(err, f.Close())
}

// Only this user can access the directory. Anything else with its name is replaced.
func makeDir(in *os.Root, name string) error {
	info, err := in.Lstat(name)
	if err == nil && !info.IsDir() {
		if err := in.Remove(name); err != nil {
			return err
		}
	}
	if err := in.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func makeParents(home *os.Root, name string) error {
	for i, c := range name {
		if c == filepath.Separator {
			if err := makeDir(home, name[:i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// A directory or file at its path stays, because a command made it.
func makeLink(home *os.Root, l link) error {
	name := filepath.FromSlash(l.Name)
	if err := makeParents(home, name); err != nil {
		return err
	}
	if target, err := home.Readlink(name); err == nil {
		if target == l.Target {
			return nil
		}
		if err := home.Remove(name); err != nil {
			return err
		}
	}
	if err := home.Symlink(l.Target, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// An earlier run without the network made these links: their targets cannot be written.
func dropLinks(home *os.Root) error {
	names := []string{".m2/repository"}
	for _, t := range toolchains() {
		for _, c := range t.caches {
			if c.by == "" && c.how == lent {
				names = append(names, c.inHome)
			}
		}
	}
	for _, name := range names {
		name = filepath.FromSlash(name)
		if info, err := home.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if err := home.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Commands commit in the user's name, in repositories of any owner: walls replace git's own check of the owner. No other
// setting of the user is copied. Existing settings stay.
func (w *Workshop) gitIdentity(home *os.Root) error {
	if _, err := home.Lstat(".gitconfig"); err == nil {
		return nil
	}
	text := "[safe]\n\tdirectory = *\n[gc]\n\tauto = 0\n"
	if git, err := sandbox.FindProgram("git", w.Environ, slices.Concat(w.Write, []string{w.Root, w.Tree})...); err == nil {
		name, email := w.gitUser(git)
		text += gitUserSetting("name", name) + gitUserSetting("email", email)
	}
	f, err := home.OpenFile(".gitconfig", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func gitUserSetting(key, value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf("[user]\n\t%s = \"%s\"\n", key, gitQuoter.Replace(value))
}

var gitQuoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ", "\x00", "")

const gitTimeout = 5 * time.Second

func (w *Workshop) gitUser(git string) (name, email string) {
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, git, "config", "--global", "--null", "--get-regexp", `^user\.(name|email)$`)
	cmd.Dir = w.Home
	cmd.Env = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(w.Home)}
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"} {
		if value := w.get(name); filepath.IsAbs(value) {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	out, err := cmd.Output()
	if err != nil {
		return "", ""
	}
	for setting := range strings.SplitSeq(string(out), "\x00") { // the last of several wins
		switch key, value, _ := strings.Cut(setting, "\n"); key {
		case "user.name":
			name = strings.TrimSpace(value)
		case "user.email":
			email = strings.TrimSpace(value)
		}
	}
	return name, email
}
