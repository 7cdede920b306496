package putback

import (
	"io/fs"
	"syscall"
)

func stampOf(info fs.FileInfo) stamp {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}
	}
	return stamp{Size: st.Size, Changed: st.Ctim.Nano(), Inode: st.Ino, Links: uint64(st.Nlink), Owner: owner{int(st.Uid), int(st.Gid)}}
}
