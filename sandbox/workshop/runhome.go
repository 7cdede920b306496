package workshop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// makeHome makes the folders of the run and what lies in its home. All goes
// through the opened run's folder, and what a command may have left there is
// never followed: a symlink in a folder's place is removed.
func (o *outfit) makeHome() error {
	run, err := os.OpenRoot(o.run)
	if err != nil {
		return err
	}
	defer run.Close()
	for _, name := range []string{homeFolder, tmpFolder, asideFolder} {
		if err := makeFolder(run, name); err != nil {
			return err
		}
	}
	home, err := run.OpenRoot(homeFolder)
	if err != nil {
		return err
	}
	defer home.Close()
	for _, l := range o.links {
		if err := makeLink(home, l); err != nil {
			return err
		}
	}
	if o.net {
		if err := dropLinks(home); err != nil {
			return err
		}
	}
	return o.gitIdentity(home)
}

// makeFolder makes a folder for this user alone, in the place of whatever else
// has its name.
func makeFolder(in *os.Root, name string) error {
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

// makeLink makes a symlink in a home, with the folders above it. A folder or
// file that stands there stays: a command made it.
func makeLink(home *os.Root, l link) error {
	name := filepath.FromSlash(l.Name)
	if dir := filepath.Dir(name); dir != "." {
		if err := makeFolder(home, dir); err != nil {
			return err
		}
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

// dropLinks removes the links to caches that only a run without the network
// has: what they lead to cannot be written.
func dropLinks(home *os.Root) error {
	for _, name := range []string{".cargo/registry", ".cargo/git", ".m2/repository", ".npm/_cacache"} {
		name = filepath.FromSlash(name)
		if info, err := home.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if err := home.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// gitIdentity lets commands commit in the person's name, in repositories of
// any owner: the walls hold what git's own check would. Nothing else is taken
// from the person's settings; what stands there already stays.
func (o *outfit) gitIdentity(home *os.Root) error {
	if _, err := home.Lstat(".gitconfig"); err == nil {
		return nil
	}
	text := "[safe]\n\tdirectory = *\n[gc]\n\tauto = 0\n"
	if git := o.program("git"); git != "" {
		for _, key := range []string{"name", "email"} {
			if value := o.gitSetting(git, "user."+key); value != "" {
				text += fmt.Sprintf("[user]\n\t%s = \"%s\"\n", key, gitQuoter.Replace(value))
			}
		}
	}
	f, err := home.OpenFile(".gitconfig", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// gitQuoter writes a value as git's settings have it between quotes.
var gitQuoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ", "\x00", "")

// gitPatience is how long git may take to say who the person is.
const gitPatience = 5 * time.Second

// gitSetting is one of the person's own settings; empty where there is none, or
// git cannot tell.
func (o *outfit) gitSetting(git, key string) string {
	ctx, cancel := context.WithTimeout(context.Background(), gitPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, git, "config", "--global", "--get", key)
	cmd.Dir = o.run
	cmd.Env = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(o.run)}
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"} {
		if value := o.get(name); filepath.IsAbs(value) {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// program is a program on the person's PATH that does not lie in the workspace:
// hone itself must not start what a model wrote.
func (o *outfit) program(name string) string {
	for _, dir := range o.searched() {
		if path := filepath.Join(dir, name); !o.inside(path) && program(path) {
			return path
		}
	}
	return ""
}
