//go:build unix

package process

import (
	"os"
	"syscall"
)

func exitOf(state *os.ProcessState) Exit {
	ws, ok := state.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return Exit{Status: -1, Signal: ws.Signal().String()}
	}
	return Exit{Status: state.ExitCode()}
}
