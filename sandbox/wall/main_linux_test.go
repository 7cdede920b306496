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
// command behind walls, or waits for one, and is killed.
func TestMain(m *testing.M) {
	if exe, _ := os.Executable(); filepath.Base(exe) == withoutHelper {
		w, err := Build(context.Background(), sandbox.Wall(os.Getenv("SANDBOX_TEST_WALL")), system())
		if err == nil {
			_, err = w.Run(context.Background(), inside("/", "true"))
		}
		fmt.Println(err)
		os.Exit(1)
	}
	Helper()
	webChild()
	if script := os.Getenv("SANDBOX_TEST_RUN"); script != "" {
		runtest.RunScript(must(Build(context.Background(), sandbox.Wall(os.Getenv("SANDBOX_TEST_WALL")), system())), script)
		os.Exit(0)
	}
	if os.Getenv("SANDBOX_TEST_IDLE") != "" {
		w := must(Build(context.Background(), sandbox.Wall(os.Getenv("SANDBOX_TEST_WALL")), system()))
		fmt.Println(idle(w).tree.PID())
		select {}
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
