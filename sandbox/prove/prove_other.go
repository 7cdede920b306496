//go:build !linux

package prove

import (
	"context"
	"errors"

	"hone/sandbox"
)

// Helper does nothing: walls need Linux.
func Helper() {}

// Wall returns an error: walls need Linux.
func Wall(context.Context, sandbox.Wall, string) (Report, error) { return Report{}, errNoWalls }

// Short returns an error: walls need Linux.
func Short(context.Context, sandbox.Wall, string) (Report, error) { return Report{}, errNoWalls }

// Conditions returns an error: walls need Linux.
func Conditions(sandbox.Wall, string) (string, error) { return "", errNoWalls }

var errNoWalls = errors.New("walls need Linux")
