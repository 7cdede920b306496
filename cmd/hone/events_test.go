package main

import (
	"fmt"
	"testing"

	"hone/history"
	"hone/journal"
)

// TestLastCall: a call does not wait for what another one has recorded after it.
func TestLastCall(t *testing.T) {
	for _, tt := range []struct {
		lines []string
		want  int64
	}{
		{nil, 0},
		{[]string{`"type":"start"`}, 0},
		{[]string{`"type":"start"`, fmt.Sprintf(`"type":%q`, history.TypeReserve)}, 2},
		{[]string{fmt.Sprintf(`"type":%q`, history.TypeReserve), fmt.Sprintf(`"type":%q`, history.TypeReserve), `"type":"commit"`}, 2},
		{[]string{fmt.Sprintf(`"type":%q`, history.TypeReserve), fmt.Sprintf(`"type":%q,"phase":"begin","step":{}`, history.TypeAsk)}, 1},
		{[]string{fmt.Sprintf(`"type":%q`, history.TypeReserve), fmt.Sprintf(`"type":%q,"phase":"begin","step":{},"command":true`, history.TypeAsk)}, 2},
	} {
		var events []journal.Event
		for i, line := range tt.lines {
			e, err := journal.ParseLine(fmt.Appendf(nil, `{"v":1,"seq":%d,%s}`, i+1, line))
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
		}
		if got := lastCall(history.Read(events).Events()); got != tt.want {
			t.Errorf("%q: %d, want %d", tt.lines, got, tt.want)
		}
	}
}
