package prove

import "slices"

// attempts are all there are.
func attempts() []Attempt {
	return slices.Concat(fileAttempts(), guardedAttempts(), processAttempts(), kernelAttempts(), networkAttempts(), sharedAttempts(), programAttempts())
}
