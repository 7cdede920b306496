package agent

import (
	"os"
	"testing"

	"hone/sandbox/wall"
)

// TestMain also plays the supervisors of commands.
func TestMain(m *testing.M) {
	wall.Helper()
	os.Exit(m.Run())
}
