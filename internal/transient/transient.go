// Package transient tells errors of the operating system that may pass from those that say
// what a file is. An error that may pass says nothing about a file, a program or a model, so
// code that gets one records nothing and stops (ruling G22).
package transient

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"
)

// facts are the errors that say what a file, a directory or a program is, and go on doing so. The first three
// stand for more than one error of the system.
var facts = append([]error{
	fs.ErrNotExist, fs.ErrPermission, fs.ErrExist,
	syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENOTEMPTY, syscall.ENAMETOOLONG, syscall.EINVAL, syscall.EILSEQ,
	syscall.EROFS, syscall.EXDEV, syscall.EMLINK, syscall.ENXIO, syscall.ENODEV, syscall.EFBIG, syscall.EOVERFLOW, syscall.E2BIG, syscall.ENOEXEC,
	syscall.ENOSYS, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.ENOTTY,
	syscall.EBUSY, // a mount point
}, ofSystem...)

// Is reports whether there is an error of the operating system in err that may pass. An error that
// hone does not know may. An error that is not the system's, such as one of a context, does not count.
func Is(err error) bool {
	switch e := err.(type) {
	case syscall.Errno:
		return !slices.ContainsFunc(facts, func(fact error) bool { return errors.Is(e, fact) })
	case interface{ Unwrap() error }:
		return Is(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), Is)
	}
	return false
}

// remedies are what the user can do about some of the errors.
var remedies = []struct {
	errnos []syscall.Errno
	remedy string
}{
	{ofDisk, "free some disk space"},
	{[]syscall.Errno{syscall.EIO}, "make sure that the disk works"},
	{[]syscall.Errno{syscall.ESTALE, syscall.ETIMEDOUT}, "make sure that the server of the file system can be reached"},
	{[]syscall.Errno{syscall.EMFILE, syscall.ENFILE}, "raise the limit of open files (ulimit -n), or end programs that have many open"},
	{[]syscall.Errno{syscall.ENOMEM}, "free some memory"},
	{[]syscall.Errno{syscall.EAGAIN}, "raise the limit of processes (ulimit -u), or end some"},
}

// Remedy returns what the user can do about an error, as a clause in the imperative; empty
// if err is nil, cannot pass, or is not a known one.
func Remedy(err error) string {
	for _, r := range remedies {
		if isOneOf(err, r.errnos) {
			return r.remedy
		}
	}
	return ""
}

// OfDisk reports whether an error means that a disk is full, or the user's share of it.
func OfDisk(err error) bool { return isOneOf(err, ofDisk) }

func isOneOf(err error, errnos []syscall.Errno) bool {
	return slices.ContainsFunc(errnos, func(e syscall.Errno) bool { return errors.Is(err, e) })
}
