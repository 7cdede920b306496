// Package shortage recognizes the errors of a machine that has run out of something. Such
// an error says nothing about the program or the model that met it, and goes away once
// there is enough again.
package shortage

import (
	"errors"
	"syscall"
)

// kinds are the errors, with what the user can do about them.
var kinds = []struct {
	errnos []syscall.Errno
	remedy string
}{
	{ofDisk, "free some disk space"},
	{[]syscall.Errno{syscall.EIO}, "make sure that the disk works"},
	{[]syscall.Errno{syscall.EMFILE, syscall.ENFILE}, "raise the limit of open files (ulimit -n), or end programs that have many open"},
	{[]syscall.Errno{syscall.ENOMEM}, "free some memory"},
	{[]syscall.Errno{syscall.EAGAIN}, "raise the limit of processes (ulimit -u), or end some"},
}

// Remedy returns what the user can do about an error, as a clause in the imperative; empty
// if the machine is not short of anything, or err is nil.
func Remedy(err error) string {
	for _, k := range kinds {
		if isOneOf(err, k.errnos) {
			return k.remedy
		}
	}
	return ""
}

// OfDisk reports whether an error means that a disk is full, or the user's share of it.
func OfDisk(err error) bool { return isOneOf(err, ofDisk) }

func isOneOf(err error, errnos []syscall.Errno) bool {
	for _, e := range errnos {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
