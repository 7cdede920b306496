package denied

import "golang.org/x/sys/unix"

// writable reports whether the user can write a file or a directory.
func writable(path string) bool { return unix.Access(path, unix.W_OK) == nil }
