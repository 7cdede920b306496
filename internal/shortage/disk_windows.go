package shortage

import (
	"syscall"

	"golang.org/x/sys/windows"
)

var ofDisk = []syscall.Errno{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED}
