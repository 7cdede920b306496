//go:build unix

package sandbox

import (
	"os"
	"syscall"
)

// exitResult says how a process exited.
func exitResult(state *os.ProcessState) Result {
	ws, ok := state.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return Result{Exit: -1, Signal: ws.Signal().String()}
	}
	return Result{Exit: state.ExitCode()}
}
