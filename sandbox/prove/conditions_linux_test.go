package prove

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"hone/sandbox"
)

// printConditions makes the test binary print its conditions.
const printConditions = "HONE_PROVE_CONDITIONS"

// The conditions stay the same in this process, and in another one of this program. They
// are others for another wall, and in other namespaces.
func TestConditions(t *testing.T) {
	own, err := Conditions(sandbox.Hidden, "")
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv(printConditions) != "" {
		os.Stdout.WriteString("conditions " + own + "\n")
		return
	}
	if landlock, err := Conditions(sandbox.Landlock, ""); err != nil || landlock == own {
		t.Errorf("hidden and landlock have the same conditions %s, %v", landlock, err)
	}
	if same := conditionsOfChild(t, nil); same != own {
		t.Errorf("another process: %s, want %s", same, own)
	}
	if elsewhere := conditionsOfChild(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS}); elsewhere == own {
		t.Error("in other namespaces the conditions are the same")
	}
}

func conditionsOfChild(t *testing.T, attr *syscall.SysProcAttr) string {
	t.Helper()
	c := exec.Command("/proc/self/exe", "-test.run=^TestConditions$")
	c.Env, c.SysProcAttr = append(os.Environ(), printConditions+"=1"), attr
	out, err := c.Output()
	if err != nil {
		t.Skipf("SKIPPED: no other namespaces here: %v", err)
	}
	_, after, _ := strings.Cut(string(out), "conditions ")
	conditions, _, _ := strings.Cut(after, "\n")
	return conditions
}
