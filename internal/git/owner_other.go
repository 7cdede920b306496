//go:build !unix

package git

// hone leaves the question to git.
func ownedByUser(string) bool { return true }
