package wall

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hone/sandbox"
	"hone/sandbox/internal/runtest"
)

// TestMain also plays a helper, a web server or client, and a hone that runs a
// command behind walls and is killed.
func TestMain(m *testing.M) {
	if exe, _ := os.Executable(); filepath.Base(exe) == withoutHelper {
		w, err := Build(context.Background(), system(sandbox.Wall(os.Getenv("SANDBOX_TEST_WALL"))))
		if err == nil {
			_, err = w.Run(context.Background(), inside("/", "true"))
		}
		fmt.Println(err)
		os.Exit(1)
	}
	Helper()
	webChild()
	if script, dir := os.Getenv("SANDBOX_TEST_RUN"), os.Getenv("SANDBOX_TEST_DIR"); dir != "" {
		runtest.RunScript(None{Keeper: NewKeeper(dir)}, script)
		os.Exit(0)
	} else if script != "" {
		runtest.RunScript(must(Build(context.Background(), system(sandbox.Wall(os.Getenv("SANDBOX_TEST_WALL"))))), script)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// withoutHelper is the file name of a program that does not call Helper.
const withoutHelper = "without-helper"

// Such a program fails to build walls. It does not start itself again and again.
func TestProgramWithoutHelper(t *testing.T) {
	program := filepath.Join(t.TempDir(), withoutHelper)
	must(0, os.Link(must(os.Executable()), program))
	for _, wall := range []sandbox.Wall{sandbox.Hidden, sandbox.NoWall} {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), "SANDBOX_TEST_WALL="+string(wall))
		out, _ := cmd.CombinedOutput()
		if !strings.Contains(string(out), "must call wall.Helper first") {
			t.Errorf("%s: %s", wall, out)
		}
	}
}
