//go:build unix

package state

import (
	"fmt"
	"os"
	"syscall"
)

func checkPrivate(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; int(owner) != os.Geteuid() {
		return fmt.Errorf("hone's state folder %s belongs to user %d, not to you; set XDG_STATE_HOME to a directory of your own", dir, owner)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("other users can write to hone's state folder %s; type: chmod 700 %s", dir, dir)
	}
	return nil
}
