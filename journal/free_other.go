//go:build !linux && !darwin && !windows

package journal

// FreeSpace always returns false.
func FreeSpace(string) (bytes int64, ok bool) { return 0, false }
