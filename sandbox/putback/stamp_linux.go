package putback

import (
	"io/fs"
	"syscall"
)

// touchTells reports whether stamp.Touched changes with every change of a file.
const touchTells = true

// stampOf returns the stamp of a file.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{Size: info.Size(), Changed: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Touched = st.Ctim.Nano()
		s.Ino, s.Links = st.Ino, uint64(st.Nlink)
		s.UID, s.GID = int(st.Uid), int(st.Gid)
	}
	return s
}
