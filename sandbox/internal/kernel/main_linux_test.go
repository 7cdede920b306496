package kernel

import (
	"os"
	"testing"
)

// TestMain is also a command that restrains itself; see [restrainedChild].
func TestMain(m *testing.M) {
	restrainedChild()
	os.Exit(m.Run())
}
