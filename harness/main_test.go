package harness

import (
	"os"
	"testing"
)

// TestMain gives the tests a state folder of their own. In the helper processes of
// walls Main does not return.
func TestMain(m *testing.M) {
	Main()
	dir, err := os.MkdirTemp("", "state-*")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("XDG_STATE_HOME", dir)
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}
