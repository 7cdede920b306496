//go:build unix && !linux

package process

import (
	"fmt"
	"os"
	"syscall"
)

// marks are the process groups of the commands that run: only Linux shows the marks of
// other processes. The keeper gets the groups through its pipe.
type marks struct{ groups map[int]bool }

// NewKeeper returns a keeper of commands that run for a directory.
func NewKeeper(string) *Keeper { return &Keeper{} }

// Env returns nil: nothing would find the variable.
func (k *Keeper) Env() []string { return nil }

// EndEarlier does nothing: nothing tells which processes they are.
func (k *Keeper) EndEarlier() (programs []string) { return nil }

func (k *Keeper) add(group int) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.groups == nil {
		k.groups = map[int]bool{}
	}
	k.groups[group] = true
	k.send("+", group)
}

func (k *Keeper) remove(group int) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.groups, group)
	k.send("-", group)
}

func (k *Keeper) tellAll() {
	for group := range k.groups {
		k.send("+", group)
	}
}

func (k *Keeper) send(what string, group int) {
	if k.pipe != nil {
		_, _ = fmt.Fprintf(k.pipe, "%s%d\n", what, group)
	}
}

func self() (string, error) { return os.Executable() }

func (k *Keeper) args() []string { return nil }

func withoutLimit(start func() error) error { return start() }

func endLeftovers(_ []string, groups map[int]bool) {
	for group := range groups {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
}
