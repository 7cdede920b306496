//go:build !unix

package state

// private always succeeds: the folder lies in the user's profile, whose access
// rights it inherits.
func checkPrivate(string) error { return nil }
