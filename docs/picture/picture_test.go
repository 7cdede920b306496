package main

import (
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// TestFrames: a frame is what a terminal shows once an update is complete.
func TestFrames(t *testing.T) {
	ms := time.Millisecond
	recording := []output{
		{0, "a \x1b[1;32mb\x1b[0m\r\n"},
		{200 * ms, "\x1b[?2026h\x1b[2m世界\x1b[0m!"},
		{400 * ms, "\r\n⠋ x  y\r\n"},
		{600 * ms, "\x1b[?2026l"},
		{800 * ms, "\x1b[2A\x1b[J"},                               // erases the last two rows
		{810 * ms, "z\x1b[?7lThis line is too long.\x1b[?7h\r\n"}, // too early for a frame of what was before
		{810 * ms, "\a"},
		{9 * time.Second, "1\r\n2\r\n3"}, // scrolls
	}
	first := []run{{0, "a", ""}, {2, "b", "c2 bold"}}
	want := []frame{
		{0, [][]run{first, nil, nil, nil}, 0, 1},
		{600 * ms, [][]run{first, {{0, "世", "dim"}, {2, "界", "dim"}, {4, "!", ""}}, {{0, "⠋", ""}, {2, "x", ""}, {5, "y", ""}}, nil}, 0, 3},
		{800 * ms, [][]run{first, {{0, "zThis line.", ""}}, nil, nil}, 0, 2},
		{9 * time.Second, [][]run{{{0, "zThis line.", ""}}, {{0, "1", ""}}, {{0, "2", ""}}, {{0, "3", ""}}}, 1, 3},
	}
	if diff := gocmp.Diff(want, frames(recording, 11, 4), gocmp.AllowUnexported(frame{}, run{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestRecord: a recording has what was typed, what a program wrote, and why it failed.
func TestRecord(t *testing.T) {
	line := `stty size; exit 3`
	recording, err := record(exec.Command("sh", "-c", line), line, 40, 10)
	if got, want := texts(recording), prompt+line+"\r\n10 40\r\n"+prompt; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if e := (*exec.ExitError)(nil); !errors.As(err, &e) || e.ExitCode() != 3 {
		t.Errorf("the error is %v", err)
	}
	if !slices.IsSortedFunc(recording, func(a, b output) int { return cmp.Compare(a.at, b.at) }) {
		t.Errorf("the times do not increase: %v", recording)
	}
}

// TestSVG: the picture shows its frames, and nothing of a recording is markup.
func TestSVG(t *testing.T) {
	got := svg("<&>", frames([]output{{0, "\x1b[31m<script>&\x1b[0m\r\n"}, {time.Second, "two"}}, 20, 3), 20, 3)
	if diff := gocmp.Diff([]string{"<script>&", "<script>&\ntwo"}, shownFrames(t, got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, want := range []string{"0.00%{transform:translateY(0px)}20.00%{transform:translateY(-60px)}", "film 5.00s step-end infinite", `transform="translate(0 -60)"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

// TestPicture: the picture in the README is of a run that failed, and then passed.
func TestPicture(t *testing.T) {
	name := filepath.Join("..", "hone.svg")
	picture, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if len(picture) > 150_000 {
		t.Errorf("%s has %d bytes", name, len(picture))
	}
	list := shownFrames(t, string(picture))
	if all := strings.Join(list, "\n"); !strings.Contains(all, "tokens") || !strings.Contains(all, "↓") {
		t.Errorf("%s does not show that a reply arrives", name)
	}
	last := list[len(list)-1]
	for _, want := range []string{`\$ +` + regexp.QuoteMeta(line), `✗ round 1 .*roman\.go`, `✓ round 2 .*roman\.go`, `✓ done: .*2 rounds`, `roman\.go +\+\d+ . \d+`, `review .*hone show`, `undo .*hone undo`} {
		if !regexp.MustCompile(`(?m)^ *` + want).MatchString(last) {
			t.Errorf("the last frame does not match %q; make picture:\n%s", want, last)
		}
	}
}

// shownFrames returns the text of each frame of a picture. It reports markup that a code
// host removes or does not load.
func shownFrames(t *testing.T, picture string) []string {
	t.Helper()
	if regexp.MustCompile(`@import|url\(|data:`).MatchString(picture) {
		t.Error("the picture refers to something outside of it")
	}
	var frames [][]string
	rows, id := map[string][]string{}, ""
	show := func(id string) {
		last := len(frames) - 1
		frames[last] = append(frames[last], strings.Join(rows[id], " "))
	}
	d := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			id = cmp.Or(attribute(t, e, "id"), id)
			switch {
			case !slices.Contains([]string{"svg", "title", "style", "rect", "circle", "g", "text", "tspan", "use"}, e.Name.Local):
				t.Errorf("element %s", e.Name.Local)
			case attribute(t, e, "class") == "cursor":
				frames = append(frames, nil)
			case e.Name.Local == "use":
				show(strings.TrimPrefix(attribute(t, e, "href"), "#"))
			}
		case xml.CharData:
			if id != "" {
				rows[id] = append(rows[id], string(e))
			}
		case xml.EndElement:
			if e.Name.Local == "text" && id != "" {
				show(id)
				id = ""
			}
		}
	}
	var texts []string
	for _, f := range frames {
		texts = append(texts, strings.Join(f, "\n"))
	}
	return texts
}

// attribute returns an attribute of an element; empty if it has none. It reports
// attributes that are scripts, and references to other files.
func attribute(t *testing.T, e xml.StartElement, name string) string {
	t.Helper()
	value := ""
	for _, a := range e.Attr {
		if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#") {
			t.Errorf("attribute %s=%q", a.Name.Local, a.Value)
		}
		if a.Name.Local == name {
			value = a.Value
		}
	}
	return value
}
