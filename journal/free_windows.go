package journal

import "golang.org/x/sys/windows"

// FreeSpace returns how many bytes the user can still write at path. ok is false if
// that is unknown.
func FreeSpace(path string) (bytes int64, ok bool) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, false
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, false
	}
	return int64(free), true
}
