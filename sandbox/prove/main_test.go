package prove

import (
	"os"
	"testing"

	"hone/sandbox/wall"
)

func TestMain(m *testing.M) {
	wall.Helper()
	Helper()
	os.Exit(m.Run())
}
