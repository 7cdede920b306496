package sandbox

import (
	"fmt"
	"strings"
)

// Wall names a kind of walls.
type Wall string

// The walls, strongest first. Beyond NoWall they are Linux's.
const (
	Auto       Wall = "auto"     // the strongest of Hidden, Bubblewrap and Landlock that can be had here
	Hidden     Wall = "hidden"   // namespaces, built by this program alone
	Bubblewrap Wall = "bwrap"    // namespaces, built by bubblewrap
	Firejail   Wall = "firejail" // firejail, only when it is named
	Landlock   Wall = "landlock" // Landlock and seccomp alone
	NoWall     Wall = "none"     // bounded, but not walled in
)

// Level is how much walls hold back.
type Level string

const (
	LevelHidden  Level = "hidden"  // what is not allowed does not exist
	LevelGuarded Level = "guarded" // what is not allowed cannot be opened, but is seen to exist
	LevelOpen    Level = "open"    // nothing is held back
)

// Grade says what walls reached on this machine.
type Grade struct {
	Wall     Wall   `json:"wall"`
	Level    Level  `json:"level"`
	Landlock int    `json:"landlock,omitempty"` // the ABI that was used; 0 means none
	Seccomp  bool   `json:"seccomp,omitempty"`
	Net      string `json:"net"` // off, doors, on
	// Why says why Auto did not take a stronger one.
	Why string `json:"why,omitempty"`
	// Open are what a command can still do that the policy does not allow, in
	// words.
	Open []string `json:"open,omitempty"`
}

// String is the grade in a line.
func (g Grade) String() string {
	layers := []string{string(g.Level)}
	if g.Landlock > 0 {
		layers = append(layers, fmt.Sprintf("Landlock ABI %d", g.Landlock))
	}
	if g.Seccomp {
		layers = append(layers, "seccomp")
	}
	return fmt.Sprintf("%s (%s; network %s)", g.Wall, strings.Join(layers, ", "), g.Net)
}

// WallError says that a wall cannot be had.
type WallError struct {
	Wall   Wall
	Reason string // for a person
	Next   string // what to do about it; may be empty
	Err    error  // may be nil
}

// Error names the wall and the reason.
func (e *WallError) Error() string {
	text := fmt.Sprintf("the wall %s cannot be had: %s", e.Wall, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap is what the operating system said, or nil.
func (e *WallError) Unwrap() error { return e.Err }

// Hint is what to do about it.
func (e *WallError) Hint() string { return e.Next }

// Restored is a protected path that a command changed, or tried to.
type Restored struct {
	// Path is absolute. Of a folder that was replaced as a whole only the folder
	// is told, and after the first hundred changes the folder around the rest.
	Path string `json:"path"`
	// Kept is where what the command left at Path is now, in [Policy.Aside];
	// empty where it left nothing there, where only a mode, an owner or a
	// second name was changed, or where there is no Aside.
	Kept string `json:"kept,omitempty"`
	// Lost says, for a person, why Path is NOT as it was before, or may not be;
	// empty means that it is.
	Lost string `json:"lost,omitempty"`
}
