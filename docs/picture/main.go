// Command picture writes docs/hone.svg, the moving picture in the README: it runs hone
// on a sample project in a terminal of its own, and draws what the terminal shows. The
// replies of the model are scripted; everything else is real.
//
//	picture HONE PICTURE.svg
package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/tools/txtar"
)

//go:embed roman.txtar
var scene []byte

const (
	line          = `hone fix --check "go test ./..."`
	columns, rows = 84, 15
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: picture HONE PICTURE.svg")
		os.Exit(2)
	}
	if err := draw(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// draw writes the picture of a run of the program hone.
func draw(hone, picture string) error {
	dir, err := os.MkdirTemp("", "picture-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	replies, err := writeScene(dir)
	if err != nil {
		return err
	}
	server := httptest.NewServer(serveReplies(replies))
	defer server.Close()
	c, err := shell(dir, hone, server.URL)
	if err != nil {
		return err
	}
	recording, err := record(c, line, columns, rows)
	if err != nil {
		return fmt.Errorf("%s: %w; the terminal received:\n%s", line, err, texts(recording))
	}
	return os.WriteFile(picture, []byte(svg("hone fix", frames(recording, columns, rows), columns, rows)), 0o666)
}

// writeScene writes the project to dir, makes a repository of it, and returns the replies.
func writeScene(dir string) ([]reply, error) {
	var replies []reply
	for _, f := range txtar.Parse(scene).Files {
		if f.Name == "replies.json" {
			if err := json.Unmarshal(f.Data, &replies); err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			continue
		}
		name := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return nil, err
		}
		if err := os.WriteFile(name, f.Data, 0o666); err != nil {
			return nil, err
		}
	}
	return replies, exec.Command("git", "init", "--quiet", filepath.Join(dir, "project")).Run()
}

// shell returns a shell that runs the line in the project of dir, where hone is the
// program of that path, and where the model is at an address.
func shell(dir, hone, model string) (*exec.Cmd, error) {
	hone, err := filepath.Abs(hone)
	if err != nil {
		return nil, err
	}
	c := exec.Command("sh", "-c", line)
	c.Dir = filepath.Join(dir, "project")
	c.Env = []string{
		"PATH=" + filepath.Dir(hone) + ":" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TERM=xterm-256color", "LANG=C.UTF-8",
		"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"),
		"HONE_MODEL=gemini/gemini-2.5-pro", "GEMINI_API_KEY=scripted", "GOOGLE_GEMINI_BASE_URL=" + model,
	}
	return c, nil
}
