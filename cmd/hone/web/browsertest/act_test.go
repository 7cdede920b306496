package browsertest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// content returns what a file holds.
func (p place) content(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(data)
}

// TestAct answers a question on the page, with the keyboard, and undoes the run after
// looking at what that would restore.
func TestAct(t *testing.T) {
	b := browser(t)
	change, _ := json.Marshal(map[string]any{"create-or-update": map[string]string{"specs/s.md": "New " + hostile + "\n"}})
	p := newPlace(t, "specs/s.md", "Old.\n", "../replies", fmt.Sprintf("=== reply ===\n%s\n", change))
	p.run([]int{4}, "reconcile", "-m", "script/../replies", "--sandbox", "none", "-q")
	address, _ := p.web("last", "--allow-actions")
	b.open(address)
	b.says("Change specs/s.md?", "+New "+hostile)
	b.review("question")
	b.do(chromedp.Focus(chromedp.CSS("#act button[value=yes]")), chromedp.KeyEvent("\r"))
	b.says("done", "preview undo")
	b.lacks("Change specs/s.md?")
	if got := p.content("specs/s.md"); got != "New "+hostile+"\n" {
		t.Errorf("the file is %q", got)
	}
	b.review("answered")
	b.do(chromedp.Click(chromedp.CSS(`#act a[href*="/preview/undo/"]`)))
	b.says("Undo ", "specs/s.md", "Undo the run")
	b.review("undo")
	if got := p.content("specs/s.md"); got != "New "+hostile+"\n" {
		t.Errorf("the preview changes the file: %q", got)
	}
	b.do(chromedp.Click(chromedp.CSS("#plan button")))
	b.says("undone")
	if got := p.content("specs/s.md"); got != "Old.\n" {
		t.Errorf("after the undo, the file is %q", got)
	}
	b.do(chromedp.Click(chromedp.CSS("nav a")))
	b.says("Runs")
	p.run([]int{4}, "reconcile", "-m", "script/../replies", "--sandbox", "none", "-q")
	b.says("1 blocked", "1 undone")
	b.review("runs")
}
