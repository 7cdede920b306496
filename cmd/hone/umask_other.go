//go:build !unix

package main

// ensureOwnerAccess does nothing, because there is no umask.
func ensureOwnerAccess() {}
