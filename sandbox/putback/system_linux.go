package putback

import (
	"io/fs"
	"syscall"
)

// stampOf returns the stamp of a file.
func stampOf(info fs.FileInfo) stamp {
	s := stamp{Size: info.Size(), Modified: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Changed, s.Inode, s.Links = st.Ctim.Nano(), st.Ino, uint64(st.Nlink)
		s.UID, s.GID = int(st.Uid), int(st.Gid)
	}
	return s
}
