//go:build !unix

package git

// ownedByUser always succeeds: hone leaves the question to git.
func ownedByUser(string) bool { return true }
