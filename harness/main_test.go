package harness

import (
	"os"
	"testing"

	"hone/internal/crashtest"
)

// In the helper processes of walls Main does not return.
func TestMain(m *testing.M) {
	Main()
	os.Exit(crashtest.RunWithState(m))
}
