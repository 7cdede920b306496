package runs

import (
	"os"
	"testing"
)

// TestMain gives the tests a state folder of their own.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "state-*")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("XDG_STATE_HOME", dir)
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}
