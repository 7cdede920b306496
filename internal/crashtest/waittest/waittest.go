// Package waittest has the waits of tests. Its limit ends a test that hangs: a test must not
// fail because the machine is slow.
package waittest

import "time"

// Limit is how long a test waits for what must happen. Only a test that fails reaches it.
const Limit = 5 * time.Minute

// Until waits until a condition holds, and reports whether it does.
func Until(holds func() bool) bool {
	for end := time.Now().Add(Limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return true
		}
	}
	return holds()
}
