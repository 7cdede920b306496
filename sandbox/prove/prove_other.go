//go:build !linux

package prove

import (
	"context"
	"errors"

	"hone/sandbox"
)

// Helper does nothing here: walls are Linux's.
func Helper() {}

// All says that there is nothing to prove here.
func All(context.Context, sandbox.Wall) (Report, error) { return Report{}, errNowhere }

// Short says that there is nothing to prove here.
func Short(context.Context, sandbox.Wall) (Report, error) { return Report{}, errNowhere }

// errNowhere is for machines on which walls cannot be proved.
var errNowhere = errors.New("walls are proved on Linux only")
