package nofollow

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// keepAttributes gives a new file the extended attributes of the file that it shall replace, such as access lists and labels, as
// far as this process may. It leaves out capabilities, which the system takes from a file that is written to.
func (f File) keepAttributes(to *os.File) {
	size, err := unix.Flistxattr(f.fd, nil)
	if err != nil || size == 0 {
		return
	}
	names := make([]byte, size)
	if size, err = unix.Flistxattr(f.fd, names); err != nil {
		return
	}
	for name := range strings.SplitSeq(string(names[:size]), "\x00") {
		if name == "" || name == "security.capability" {
			continue
		}
		value := make([]byte, 64<<10) // the most that the system stores
		if n, err := unix.Fgetxattr(f.fd, name, value); err == nil {
			_ = unix.Fsetxattr(int(to.Fd()), name, value[:n], 0)
		}
	}
}
