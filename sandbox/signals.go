package sandbox

import (
	"os"
	"os/signal"
	"syscall"
)

// Notify is [signal.Notify] for a program that starts commands: a signal that was ignored when the
// process started stays ignored, in commands too. nohup ignores SIGHUP; a shell without job control
// ignores SIGINT and SIGQUIT in a background job, and Go cannot tell whether SIGQUIT was ignored.
func Notify(signals chan<- os.Signal, list ...os.Signal) {
	if signal.Ignored(os.Interrupt) {
		signal.Ignore(syscall.SIGQUIT)
	}
	for _, s := range list {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
}
