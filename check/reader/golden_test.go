package reader_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/check"
	"hone/check/reader"
)

var update = flag.Bool("update", false, "write the .want files")

// recording is what a tool printed.
type recording struct {
	format, file string
	out          string
	exit         int
}

// recordings returns those of all formats, or of one.
func recordings(t testing.TB) (all []recording) {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d recordings: %v", len(files), err)
	}
	for _, file := range files {
		out, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r := recording{format: filepath.Base(filepath.Dir(file)), file: file, out: string(out), exit: 1}
		switch name := filepath.Base(file); {
		case strings.HasPrefix(name, "exit0"):
			r.exit = 0
		case strings.HasPrefix(name, "killed"):
			r.exit = -1
		}
		all = append(all, r)
	}
	return all
}

func named(t testing.TB, name string) check.Reader {
	t.Helper()
	r, err := reader.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// outline has a line for each finding.
func outline(found []check.Finding) string {
	var b strings.Builder
	for _, f := range found {
		if f.Advisory {
			b.WriteString("~")
		}
		first, _, _ := strings.Cut(f.Text, "\n")
		fmt.Fprintf(&b, "%s:%d: %s | %s\n", f.File, f.Line, f.ID, first)
	}
	return b.String()
}

// complete has the other lines of the findings as well, and ! before those that are Partial.
func complete(found []check.Finding) string {
	var b strings.Builder
	for _, f := range found {
		if f.Partial {
			b.WriteString("!")
		}
		b.WriteString(outline([]check.Finding{f}))
		if _, below, more := strings.Cut(f.Text, "\n"); more {
			b.WriteString("\t" + strings.ReplaceAll(below, "\n", "\n\t") + "\n")
		}
	}
	return b.String()
}

// TestRecorded reads what real tools printed, by the name of the format and by itself. An
// empty .want says that the format has no words for it: the command's whole output is the
// finding.
func TestRecorded(t *testing.T) {
	for _, r := range recordings(t) {
		found := named(t, r.format)(r.out, r.exit)
		got := complete(found)
		wanted := strings.TrimSuffix(r.file, ".txt") + ".want"
		if *update {
			if err := os.WriteFile(wanted, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(wanted)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", r.file, diff)
		}
		if len(found) == 0 {
			continue
		}
		if diff := cmp.Diff(found, reader.Auto()(r.out, r.exit)); diff != "" {
			t.Errorf("%s (-by name +auto):\n%s", r.file, diff)
		}
	}
}

// TestWellFormed: every finding has what its user relies on.
func TestWellFormed(t *testing.T) {
	for _, r := range recordings(t) {
		found := named(t, r.format)(r.out, r.exit)
		ids := map[string]bool{}
		for _, f := range found {
			if f.ID == "" || ids[f.ID] {
				t.Errorf("%s: ID %q is empty or not unique", r.file, f.ID)
			}
			ids[f.ID] = true
			if f.Source != check.SourceCommand || f.Text == "" || strings.Contains(f.File, `\`) || f.Line < 0 || f.File == "" && f.Line != 0 {
				t.Errorf("%s: %+v", r.file, f)
			}
		}
	}
}

// TestCut reads every recording cut off at many places. Three quarters of a report with
// several findings have one at least. Where the findings of a format have an end, a cut
// report has no other IDs than the whole.
func TestCut(t *testing.T) {
	ended := regexp.MustCompile(`sarif|staticcheck/|unittest|(eslint|ruff|jest)/.*json`)
	for _, r := range recordings(t) {
		read := named(t, r.format)
		all := read(r.out, r.exit)
		if found := read(r.out[:len(r.out)*3/4], r.exit); len(found) == 0 && len(all) > 2 {
			t.Errorf("%s: nothing is found in three quarters of it", r.file)
		}
		step := max(1, len(r.out)/30)
		for n := 0; n < len(r.out); n += step {
			for _, f := range read(r.out[:n], r.exit) {
				whole := slices.ContainsFunc(all, func(a check.Finding) bool { return a.ID == f.ID })
				if !whole && ended.MatchString(r.file) {
					t.Errorf("%s cut at %d: %s", r.file, n, f.ID)
				}
			}
			reader.Auto()(r.out[:n], r.exit)
			reader.Auto()(r.out[n:], -1)
		}
	}
}

// TestAgain: a run of a shifted and reordered project, NAME-again.txt, has the IDs of
// NAME.txt, placed in the trees where they ran.
func TestAgain(t *testing.T) {
	compared := 0
	for _, r := range recordings(t) {
		file, ok := strings.CutSuffix(r.file, "-again.txt")
		if !ok {
			continue
		}
		first, err := os.ReadFile(file + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		compared++
		if diff := cmp.Diff(ids(t, r.format, string(first)), ids(t, r.format, r.out)); diff != "" {
			t.Errorf("%s (-first +again):\n%s", r.file, diff)
		}
	}
	if compared == 0 {
		t.Error("nothing was compared")
	}
}

// ids returns the sorted IDs of an output. Projects ran in /tmp/readers-NAME, and again in
// /tmp/readers-NAME2.
func ids(t *testing.T, format string, out string) (ids []string) {
	t.Helper()
	found := named(t, format)(out, 1)
	for n := range found {
		dir := regexp.MustCompile(`^/tmp/readers-\w+`).FindString(found[n].File + found[n].ID)
		if dir != "" {
			reader.Place(found[n:n+1], dir, func(string) bool { return true })
		}
		ids = append(ids, found[n].ID)
	}
	slices.Sort(ids)
	return ids
}
