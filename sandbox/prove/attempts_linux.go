package prove

import "slices"

// attempts returns all attempts.
func attempts() []Attempt {
	return slices.Concat(fileAttempts(), guardedAttempts(), processAttempts(), kernelAttempts(), networkAttempts(), sharedAttempts(), programAttempts())
}
