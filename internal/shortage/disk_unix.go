//go:build !windows

package shortage

import "syscall"

var ofDisk = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT}
