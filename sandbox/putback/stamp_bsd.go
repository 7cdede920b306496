//go:build unix && !linux

package putback

import (
	"io/fs"
	"syscall"
)

// touchTells reports whether stamp.Touched changes with every change of a file.
const touchTells = false

// stampOf returns the stamp of a file.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{Size: info.Size(), Changed: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Ino, s.Links = uint64(st.Ino), uint64(st.Nlink)
		s.UID, s.GID = int(st.Uid), int(st.Gid)
	}
	return s
}
