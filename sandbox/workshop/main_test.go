package workshop

import (
	"os"
	"testing"

	"hone/sandbox/wall"
)

// TestMain also plays a helper that builds walls.
func TestMain(m *testing.M) {
	wall.Helper()
	Helper()
	os.Exit(m.Run())
}
