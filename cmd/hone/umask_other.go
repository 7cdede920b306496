//go:build !unix

package main

// There is no umask.
func ensureOwnerAccess() {}
