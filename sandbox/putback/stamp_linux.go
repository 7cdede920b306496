package putback

import (
	"io/fs"
	"syscall"
)

// touchTells says that Stamp.Touched changes with every change.
const touchTells = true

// stampOf is what is known of a file.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{Size: info.Size(), Changed: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Touched = st.Ctim.Nano()
		s.Ino, s.Links = st.Ino, uint64(st.Nlink)
		s.UID, s.GID = int(st.Uid), int(st.Gid)
	}
	return s
}
