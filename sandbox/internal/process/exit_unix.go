//go:build unix

package process

import (
	"os"
	"syscall"

	"hone/sandbox"
)

func exitOf(state *os.ProcessState) sandbox.Result {
	ws, ok := state.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return sandbox.Result{Exit: -1, Signal: ws.Signal().String()}
	}
	return sandbox.Result{Exit: state.ExitCode()}
}
