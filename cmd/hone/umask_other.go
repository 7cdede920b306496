//go:build !unix

package main

// ownFiles does nothing: there is no umask.
func ownFiles() {}
