package child

import (
	"slices"
	"strings"
	"testing"

	"hone/history"
)

const lines = `{"v":1,"seq":1,"time":"2026-01-01T00:00:00Z","run":"r","type":"start","active_ms":0,"prev":"","loop":"fix"}
{"v":1,"seq":2,"time":"2026-01-01T00:00:00Z","run":"r","type":"usage","active_ms":0,"prev":"x","tokens":7}
{"v":1,"seq":3,"time":"2026-01-01T00:00:00Z","run":"r","type":"end","active_ms":0,"prev":"x","result":"budget","tokens":9,"cost":0.5,"findings":[{"text":"f"}],"exit":3}
`

// The feed arrives in pieces of any size.
func TestFeedPieces(t *testing.T) {
	for _, size := range []int{1, 7, len(lines)} {
		var types []string
		f := &feed{event: func(e history.Event) { types = append(types, string(e.Type)) }}
		for piece := range slices.Chunk([]byte(lines), size) {
			if n, err := f.Write(piece); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		r := f.result
		if strings.Join(types, " ") != "start usage end" || f.err != nil || r.Run != "r" || f.exit == nil || *f.exit != 3 {
			t.Fatalf("pieces of %d: %v, %+v, error %v", size, types, r, f.err)
		}
	}
}

// What is no event stops the reading, not the child. A resumed run has not ended.
func TestFeedFaults(t *testing.T) {
	f := &feed{}
	_, _ = f.Write([]byte(lines + "{\"v\":1,\"type\":\"resume\",\"run\":\"r\"}\n"))
	if f.exit != nil {
		t.Errorf("after a resume: %+v", f.result)
	}
	if n, err := f.Write([]byte("hello\n" + lines)); n == 0 || err != nil || f.err == nil || f.exit != nil {
		t.Errorf("%d, %v, %v, %+v", n, err, f.err, f.result)
	}
}

func TestTail(t *testing.T) {
	said := &tail{most: 10}
	for _, piece := range []string{"first\nsec", "ond\nthird\n"} {
		_, _ = said.Write([]byte(piece))
	}
	if got := said.text(); got != "third" {
		t.Errorf("%q", got)
	}
	for said, want := range map[string]string{
		"hone: note: a\nhone: error: b\nhone: hint: c":     "b",
		"hone: error: b\nc\nhone: note: a\nhone: error: d": "b\nc\nd",
		"panic: x\nexit": "hone ended with status 2: exit",
		"":               "hone ended with status 2",
	} {
		if err := (Result{Exit: 2, Said: said}).Error(); err == nil || err.Error() != want {
			t.Errorf("%q: %v", said, err)
		}
	}
}

func TestArgs(t *testing.T) {
	for args, want := range map[string]string{"fix": "fix --json", "fix -- -x": "fix --json -- -x"} {
		if got := strings.Join(With(strings.Fields(args), "--json"), " "); got != want {
			t.Errorf("%s: %s", args, got)
		}
	}
}
