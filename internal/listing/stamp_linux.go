package listing

import (
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stamp is what the system reports about the state of a directory or file. The zero
// stamp is that of none.
type stamp struct {
	isDir             bool
	device, inode     uint64
	size              int64
	modified, changed int64 // nanoseconds since 1970
}

// A link has its own stamp, not its target's.
func stampOf(path string) (stamp, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}, false
	}
	return stampOfInfo(info), true
}

func stampOfInfo(info fs.FileInfo) stamp {
	st := info.Sys().(*syscall.Stat_t)
	return stamp{isDir: info.IsDir(), device: uint64(st.Dev), inode: st.Ino, size: st.Size, modified: st.Mtim.Nano(), changed: st.Ctim.Nano()}
}

// The clocks of these file systems make steps of a hundredth of a second, or of a second: then no time has a fraction of one.
func (s stamp) isReliable(taken time.Time) bool {
	step := 100 * time.Millisecond
	if s.changed%int64(time.Second) == 0 {
		step = 2 * time.Second
	}
	return s.changed < taken.Add(-step).UnixNano()
}

// These file systems are known to change the stamp of a directory whenever a name in it changes, by the clock of this machine.
func showsChanges(dir string) bool {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return err == nil && slices.Contains([]int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC}, int64(st.Type))
}
