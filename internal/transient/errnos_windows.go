package transient

import (
	"syscall"

	"golang.org/x/sys/windows"
)

var ofDisk = []syscall.Errno{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED}

// ofSystem are facts too. Another program may hold a file for as long as it runs.
var ofSystem = []error{
	windows.ERROR_SHARING_VIOLATION, windows.ERROR_LOCK_VIOLATION, windows.ERROR_WRITE_PROTECT, windows.ERROR_DIRECTORY, windows.ERROR_DIR_NOT_EMPTY,
	windows.ERROR_INVALID_NAME, windows.ERROR_BAD_PATHNAME, windows.ERROR_FILENAME_EXCED_RANGE, windows.ERROR_INVALID_PARAMETER, windows.ERROR_INVALID_FUNCTION,
	windows.ERROR_NOT_SUPPORTED, windows.ERROR_NOT_A_REPARSE_POINT, windows.ERROR_CANT_RESOLVE_FILENAME, windows.ERROR_STOPPED_ON_SYMLINK,
	windows.ERROR_CANT_ACCESS_FILE, windows.ERROR_PRIVILEGE_NOT_HELD, windows.ERROR_BAD_EXE_FORMAT, windows.ERROR_EXE_MACHINE_TYPE_MISMATCH,
}
