//go:build !linux

package process

// Keeper is whether commands end with this process, also if it is killed; a nil one means that they
// may outlive it.
type Keeper struct{}

// NewKeeper returns a keeper of commands that run for a directory.
func NewKeeper(string) *Keeper { return &Keeper{} }

// Close does nothing: what keeps a command ends with it.
func (k *Keeper) Close() {}

// EndEarlier does nothing: nothing tells which processes they are.
func (k *Keeper) EndEarlier() (programs []string) { return nil }
