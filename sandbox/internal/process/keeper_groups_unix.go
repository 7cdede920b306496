//go:build unix && !linux

package process

import (
	"fmt"
	"os"
	"syscall"
)

// marks are empty: only Linux shows the marks of other processes. The keeper gets the
// process groups through its pipe.
type marks struct{}

// NewKeeper returns a keeper of commands that run for a directory.
func NewKeeper(string) *Keeper { return &Keeper{} }

// Env returns nil: nothing would find the variable.
func (k *Keeper) Env() []string { return nil }

// EndEarlier does nothing: nothing tells which processes they are.
func (k *Keeper) EndEarlier() (programs []string) { return nil }

// tell tells the keeper that a process group started (+) or ended (-).
func (k *Keeper) tell(what string, group int) {
	if k != nil && k.pipe != nil {
		_, _ = fmt.Fprintf(k.pipe, "%s%d\n", what, group)
	}
}

func self() (string, error) { return os.Executable() }

func (k *Keeper) args() []string { return nil }

func unlimited(start func() error) error { return start() }

// endLeftovers kills process groups.
func endLeftovers(_ []string, groups map[int]bool) {
	for group := range groups {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
}
