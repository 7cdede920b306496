package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRunsFit: a list of runs keeps the age and the words of tasks on a narrow terminal.
func TestRunsFit(t *testing.T) {
	for columns, want := range map[int][]string{
		0: {
			"ID      RESULT         LOOP       ROUNDS  TOKENS  AGE  TASK",
			"c4c799  ! interrupted  reconcile       2     17k   1m  make the tests pass",
		},
		60: {
			"ID      RESULT         LOOP       ROUNDS  AGE  TASK",
			"c4c799  ! interrupted  reconcile       2   1m  make the tests pass",
		},
		40: {
			"ID      RESULT         AGE  TASK",
			"c4c799  ! interrupted   1m  make the tests pass",
		},
	} {
		rows := [][]string{
			{"ID", "RESULT", "LOOP", "ROUNDS", "TOKENS", "AGE", "TASK"},
			{"c4c799", "! interrupted", "reconcile", "2", "17k", "1m", "make the tests pass"},
		}
		got := fittingTable(rows, columns)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", columns, diff)
		}
	}
}
