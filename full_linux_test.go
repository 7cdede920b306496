package hone_test

import (
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hone"
	"hone/history"
	"hone/internal/disktest"
	"hone/journal"
	"hone/model"
	"hone/tool"
)

// fillDisk takes all space of a directory's file system, in a file that it returns.
func fillDisk(t testing.TB, dir string) (file string) {
	t.Helper()
	file = filepath.Join(dir, ".hone", "filler")
	if err := os.WriteFile(file, make([]byte, 64<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	return file
}

// noise is a text that takes about size bytes even when it is compressed.
func noise(size int) string { return hex.EncodeToString(disktest.Noise(size, 1)) }

// TestDiskFillsUpDuringACall: while the model is asked, or one of its tools runs, something
// takes all space of the disk. What was paid for is recorded, whatever its size. Then the
// run stops, and the next process does not ask again.
func TestDiskFillsUpDuringACall(t *testing.T) {
	for name, size := range map[string]int{"small": 10, "in the log": 30 << 10, "in a file": 100 << 10} {
		for _, during := range []string{"reply", "result"} {
			t.Run(name+" "+during, func(t *testing.T) {
				dir := disktest.Small(t, "8m")
				var filler string
				fill := func(now string) string {
					if now != during || filler != "" {
						return ""
					}
					filler = fillDisk(t, dir)
					return noise(size)
				}
				asked, called := 0, 0
				look := tool.Tool{Spec: model.Spec{Name: "look"}, ReadOnly: true, Run: func(context.Context, tool.Input) (tool.Result, error) {
					called++
					return tool.Result{Text: "seen " + fill("result")}, nil
				}}
				m := generate(func(_ context.Context, req model.Request) (model.Reply, error) {
					asked++
					if req.Seq > 0 {
						return text("done"), nil
					}
					reply := calls("look", "{}")
					reply.Parts = append([]model.Part{{Text: "I look. " + fill("reply")}}, reply.Parts...)
					return reply, nil
				})
				role := hone.Role{Name: "editor", Model: m, Called: "test/m", MaxOutput: 16 << 10, Tools: []tool.Tool{look}}
				p := process{round: talks(role, func(hone.Conversation) {})}
				end := p.end(t, dir)
				if name == "small" && during == "result" && end.Kind == hone.KindDone {
					return // all fits into the blocks that the files have
				}
				if end.Kind != hone.KindFailed || !strings.Contains(end.Why, "no space left on device") || end.Next.First != "free some disk space" {
					t.Errorf("on the full disk the run ends with %+v", end)
				}
				if asked != 1 || called > 1 {
					t.Errorf("the model was asked %d times, and the tool called %d times", asked, called)
				}
				if err := os.Remove(filler); err != nil {
					t.Fatal(err)
				}
				if end := p.end(t, dir); end.Kind != hone.KindDone || asked != 2 || called != 1 {
					t.Errorf("with space the run ends with %+v; the model was asked %d times, and the tool called %d times", end, asked, called)
				}
				if replies := of[history.Replied](t, events(t, dir), history.TypeReply, journal.Record); len(replies) != 2 {
					t.Errorf("%d replies are recorded, want 2", len(replies))
				}
				if _, err := os.Stat(filepath.Join(dir, ".hone", "ballast")); err == nil {
					t.Error("the run left its ballast")
				}
			})
		}
	}
}

// TestNoRoomForAReply: nothing is asked if the largest reply could not be recorded.
func TestNoRoomForAReply(t *testing.T) {
	dir := disktest.Small(t, "1m")
	m := generate(func(context.Context, model.Request) (model.Reply, error) {
		t.Error("the model was asked")
		return text("done"), nil
	})
	role := hone.Role{Name: "editor", Model: m, Called: "test/m", MaxOutput: 64 << 10}
	end := process{round: talks(role, func(hone.Conversation) {})}.end(t, dir)
	if end.Kind != hone.KindFailed || end.Tokens != 0 || end.Next.First != "free some disk space" {
		t.Errorf("the run ends with %+v", end)
	}
}
