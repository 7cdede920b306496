// Package state finds the user's folder for what must lie outside every
// workspace: the folders and settings that the user trusts, the secret that binds
// runs to the user and the machine, what must be restored before a configuration is
// read, and runs that commands could change in the tree. No command behind walls can
// reach the folder.
package state

import (
	"cmp"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"hone/sandbox"
)

// Dir returns the path of the folder, which need not exist:
// $XDG_STATE_HOME/hone, or ~/.local/state/hone. On Windows it is
// %LocalAppData%\hone\state unless XDG_STATE_HOME is set.
func Dir() (string, error) {
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "hone"), nil
	}
	if runtime.GOOS == "windows" {
		base, err := os.UserCacheDir()
		return filepath.Join(base, "hone", "state"), err
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "state", "hone"), err
}

// Overlaps reports whether a directory contains the state folder or lies in it, by
// their names or with symbolic links followed. Neither needs to exist.
func Overlaps(dir string) bool {
	own, err := Dir()
	if err != nil {
		return false
	}
	for _, pair := range [][2]string{{dir, own}, {RealPath(dir), RealPath(own)}} {
		if within(pair[0], pair[1]) || within(pair[1], pair[0]) {
			return true
		}
	}
	return false
}

func within(outer, inner string) bool {
	rel, err := filepath.Rel(outer, inner)
	return err == nil && filepath.IsLocal(rel)
}

// RealPath returns a clean path without symlinks. It keeps the end of the path that
// does not exist.
func RealPath(path string) string {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err == nil || filepath.Dir(path) == path {
		return cmp.Or(real, path)
	}
	return filepath.Join(RealPath(filepath.Dir(path)), filepath.Base(path))
}

// Make returns the path of a folder in the state folder, without symbolic links.
// It creates what does not exist, for the user only. It fails if the state folder
// belongs to another user, or if others may write it.
func Make(parts ...string) (string, error) {
	dir, err := Dir()
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return "", fmt.Errorf("create hone's state folder: %w", err)
	}
	if dir, err = Find(parts...); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create hone's state folder: %w", err)
	}
	return dir, nil
}

// Find is [Make] without creating anything: what the parts name may not exist. The
// error wraps [fs.ErrNotExist] if there is no state folder.
func Find(parts ...string) (string, error) {
	dir, err := Dir()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", fmt.Errorf("open hone's state folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	owner, ok := sandbox.FileOwner(info) // elsewhere the folder inherits the access rights of the user's profile
	switch {
	case ok && owner != os.Geteuid():
		return "", fmt.Errorf("hone's state folder %s belongs to user %d, not to you; set XDG_STATE_HOME to a directory of your own", dir, owner)
	case ok && info.Mode().Perm()&0o022 != 0:
		return "", fmt.Errorf("other users can write to hone's state folder %s; type: chmod 700 %s", dir, dir)
	}
	return filepath.Join(append([]string{dir}, parts...)...), nil
}

// Load reads a record, which [Save] wrote, into the value that v points to. The error wraps
// [fs.ErrNotExist] if there is none, and names the file if it is damaged.
func Load(v any, parts ...string) error {
	file, err := Find(parts...)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Save replaces a record by a value as JSON. The parts are those of [Make]; the last one is the file. If
// it fails, the old record stays.
func Save(v any, parts ...string) error {
	dir, err := Make(parts[:len(parts)-1]...)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, parts[len(parts)-1]), append(text, '\n'), (*os.File).Sync)
}

// Remove removes a record. It returns false if there is none.
func Remove(parts ...string) (bool, error) {
	file, err := Find(parts...)
	if err == nil {
		err = os.Remove(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// WriteCache replaces a file in a directory that Make returned, with contents that can be made
// again: after a crash of the system they may be damaged, which the reader must notice.
func WriteCache(file string, content []byte) error {
	return write(file, content, func(*os.File) error { return nil })
}

func write(file string, content []byte, sync func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(file), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err = errors.Join(err, sync(f), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

// KeyFile is the name of the file with the secret that keys are derived from.
const KeyFile = "secret"

const secretSize = 32

// Key returns a key that only this user on this machine has. Keys for different
// purposes do not reveal each other. The first call creates the secret that they
// are derived from.
func Key(purpose string) ([]byte, error) {
	dir, err := Make()
	if err != nil {
		return nil, err
	}
	secret, err := readSecret(filepath.Join(dir, KeyFile))
	if errors.Is(err, fs.ErrNotExist) {
		secret, err = createSecret(filepath.Join(dir, KeyFile))
	}
	if err != nil {
		return nil, fmt.Errorf("read hone's secret: %w", err)
	}
	return hkdf.Key(sha256.New, secret, nil, purpose, secretSize)
}

func readSecret(file string) ([]byte, error) {
	secret, err := os.ReadFile(file)
	if err == nil && len(secret) != secretSize {
		return nil, fmt.Errorf("%s has %d bytes instead of %d; remove it, and hone creates another one", file, len(secret), secretSize)
	}
	return secret, err
}

// If several processes try, all return the secret that is stored.
func createSecret(file string) ([]byte, error) {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // never fails
	f, err := os.CreateTemp(filepath.Dir(file), "secret-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(secret)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if err := os.Link(f.Name(), file); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return readSecret(file)
}
