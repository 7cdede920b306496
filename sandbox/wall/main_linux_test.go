package wall

import (
	"context"
	"os"
	"testing"

	"hone/sandbox"
	"hone/sandbox/internal/runtest"
)

// TestMain also plays a helper, a web server or client, and a hone that runs a
// command behind walls and is killed.
func TestMain(m *testing.M) {
	Helper()
	webChild()
	if script := os.Getenv("SANDBOX_TEST_RUN"); script != "" {
		runtest.RunScript(must(Build(context.Background(), sandbox.Wall(os.Getenv("SANDBOX_TEST_WALL")), system())), script)
		os.Exit(0)
	}
	os.Exit(m.Run())
}
