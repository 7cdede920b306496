package runs

import (
	"os"
	"testing"

	"hone/internal/crashtest"
)

func TestMain(m *testing.M) { os.Exit(crashtest.RunWithState(m)) }
