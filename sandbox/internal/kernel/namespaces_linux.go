package kernel

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"hone/sandbox"
)

// Namespaces returns the attributes that start a process in namespaces of its
// own, as the same user, with the capabilities to build the hidden wall. net
// leaves it in this process's network. The user as exists there too.
func Namespaces(net bool, as sandbox.User) *syscall.SysProcAttr {
	flags := unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if !net {
		flags |= unix.CLONE_NEWNET
	}
	uid, gid := os.Getuid(), os.Getgid()
	return &syscall.SysProcAttr{
		Cloneflags:  uintptr(flags),
		UidMappings: mappings(uid, as.UID),
		GidMappings: mappings(gid, as.GID),
		// Supplementary groups can only be given up where they may be set.
		GidMappingsEnableSetgroups: as != (sandbox.User{}),
		AmbientCaps:                []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE, unix.CAP_DAC_OVERRIDE},
	}
}

func mappings(own, other int) []syscall.SysProcIDMap {
	m := []syscall.SysProcIDMap{{ContainerID: own, HostID: own, Size: 1}}
	if other != 0 && other != own {
		m = append(m, syscall.SysProcIDMap{ContainerID: other, HostID: other, Size: 1})
	}
	return m
}

// NamespaceIDs returns the names of this process's namespaces, by kind.
func NamespaceIDs() map[string]string {
	ids := map[string]string{}
	for _, kind := range []string{"mnt", "pid", "net", "ipc", "user"} {
		if id, err := os.Readlink("/proc/self/ns/" + kind); err == nil {
			ids[kind] = id
		}
	}
	return ids
}
