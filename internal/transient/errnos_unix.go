//go:build !windows

package transient

import "syscall"

var ofDisk = []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT}

var ofSystem []error
