package kernel

import (
	"os"
	"testing"
)

// TestMain also plays a command that restrains itself; see [restrainedChild].
func TestMain(m *testing.M) {
	restrainedChild()
	os.Exit(m.Run())
}
