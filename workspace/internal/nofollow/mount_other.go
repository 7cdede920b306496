//go:build unix && !linux

package nofollow

// Only Linux says which files are mount points.
func (d directory) isMount(string) bool { return false }
