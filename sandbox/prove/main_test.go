package prove

import (
	"os"
	"testing"

	"hone/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Helper()
	Helper()
	os.Exit(m.Run())
}
