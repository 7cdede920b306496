package browsertest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// result is a line of a file with the results of hone eval.
func result(name, model string, time int, passed bool) string {
	return fmt.Sprintf(`{"key":"%[1]s %[2]s %[3]d","case":"%[1]s","model":"%[2]s","time":%[3]d,"passed":%[4]t,"result":"done","why":"the check passes","rounds":%[3]d,"tokens":52310,"cost":0.0421,"seconds":71.5,"at":"2026-11-20T10:00:00Z"}`+"\n", name, model, time, passed)
}

// TestViews looks at the views of attempts, of a phase, of an evaluation and of two runs.
func TestViews(t *testing.T) {
	b := browser(t)
	recorded, err := filepath.Abs("testdata/phase.hone") // by hone export, after testdata/script/phase_flow.txtar of cmd/hone
	if err != nil {
		t.Fatal(err)
	}
	var results strings.Builder
	for _, model := range []string{"anthropic/claude-sonnet-4-5-20250929", "openai/gpt-5-mini", "ollama/qwen3-coder:30b-a3b-q4_K_M"} {
		for i, name := range []string{"rename-a-field-in-every-handler", "flaky-test", "off-by-one"} {
			results.WriteString(result(name, model, 1, i > 0) + result(name, model, 2, true))
		}
	}
	p := newPlace(t, "handlers.results.jsonl", results.String())
	address, _ := p.web()
	b.open(address)
	b.says("Evaluations", "handlers")
	b.lacks("No runs yet")
	b.do(chromedp.Click(chromedp.CSS(`a[href$="/eval/0/handlers.results.jsonl"]`)))
	b.says("3 cases with 3 models", "flaky-test", "openai/gpt-5-mini")
	b.review("evaluation")

	p.run([]int{0}, "import", recorded)
	b.do(chromedp.Click(chromedp.CSS("nav a")))
	b.says("phase 1")
	b.do(chromedp.Click(chromedp.CSS("#list a")))
	b.says("contract / round", "passed", "failed", "not verified", "round 3")
	b.review("phase")

	p.write("cart.go", "zero\n")
	p.write("check.sh", "grep -q two cart.go || { echo the total is wrong; echo and b is missing; exit 1; }\n")
	p.write("../first-model-with-a-long-name-20260101", writes("one", "cart.go", "one\n")+writes("still one", "cart.go", "one more\n"))
	p.write("../second", writes("half", "cart.go", "almost\n")+writes("two", "cart.go", "two\n"))
	p.run([]int{0}, "fix", "--attempts", "2", "-m", "script/../first-model-with-a-long-name-20260101", "-m", "script/../second", "--rounds", "2", "--check", "sh check.sh", "--sandbox", "none", "-q")
	b.do(chromedp.Click(chromedp.CSS("nav a")))
	b.says("sh check.sh")
	b.do(chromedp.Click(chromedp.CSS("#list a")))
	b.says("attempt 1", "attempt 2", "applied")
	b.review("attempts")

	b.do(chromedp.Click(chromedp.CSS("nav a")))
	b.says("compare the two")
	b.do(chromedp.Evaluate[chromedp.Void]("document.querySelectorAll('#list input').forEach(box => box.click())"))
	b.do(chromedp.Click(chromedp.CSS("#compare button")))
	b.says("Two runs", "phase 1", "attempts")
	b.review("compare")
}
