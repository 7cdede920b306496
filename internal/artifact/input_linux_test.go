package artifact

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestInput checks that no input that a user names is read without an end.
func TestInput(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, make := range map[string]func() error{
		"file":   func() error { return os.WriteFile(at("file"), []byte("x"), 0o600) },
		"link":   func() error { return os.Symlink("file", at("link")) },
		"marked": func() error { return os.WriteFile(at("marked"), []byte("\ufeffx"), 0o600) },
		"dir":    func() error { return os.Mkdir(at("dir"), 0o700) },
		"fifo":   func() error { return syscall.Mkfifo(at("fifo"), 0o600) },
		"zero":   func() error { return os.Symlink("/dev/zero", at("zero")) },
		"sparse": func() error { return os.Truncate(at("sparse"), 1<<40) },
	} {
		if name == "sparse" {
			if err := os.WriteFile(at(name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := make(); err != nil {
			t.Skip("SKIPPED: ", err)
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	pipe := fmt.Sprintf("/dev/fd/%d", r.Fd())
	for name, want := range map[string]string{
		at("file"): "", at("link"): "", at("marked"): "", pipe: "", at("dir"): "neither a file nor a pipe", at("zero"): "neither a file nor a pipe",
		at("fifo"): "a pipe that nothing writes to", at("sparse"): "larger than 64 MiB", at("missing"): "no such file",
	} {
		text, err := Input(name)
		if want == "" && (err != nil || string(text) != "x") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	if _, err := InputFrom(zero, "standard input"); err == nil || err.Error() != "standard input is larger than 64 MiB" {
		t.Error(err)
	}
}
