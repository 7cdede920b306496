package task_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone"
	"hone/check"
	"hone/journal"
	"hone/model"
)

// withUsage is a reply that took so many tokens.
func withUsage(tokens int64, reply model.Reply) model.Reply {
	reply.Usage = &model.Usage{Input: tokens}
	return reply
}

// TestReviewIsNotPaid: if the budget does not pay for a review, the executor's work
// is recorded as a round, and the check inspects it. A larger budget resumes there.
func TestReviewIsNotPaid(t *testing.T) {
	for name, tt := range map[string]struct {
		content, says string
		check         bool
		left          []string
	}{
		"the check passes": {"done\n", "; the check passes, but the round is incomplete", true, []string{"pending: mend a"}},
		"the check fails":  {"one\n", "", true, []string{"pending: mend a", "check: a says \"one\\n\"\nand not done\n"}},
		"no check":         {"one\n", "", false, []string{"pending: mend a"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files(t, dir, map[string]string{"Spec.toml": specText, "a": "zero\n"})
			m := &recorder{replies: []model.Reply{
				call("read", "path", "a"), call("write", "path", "a", "content", tt.content),
				withUsage(60_000, say("<final_answer>\nSTATUS: INCOMPLETE\nNEXT STEPS:\n- mend a\n</final_answer>")),
				call("read", "path", "a"), call("write", "path", "a", "content", "done\n"), say(complete),
			}}
			p := process{model: m, rounds: 5, tokens: 75_000}
			if tt.check {
				p.check = saysDone(dir)
			}
			end := p.live(t, dir)
			if end.Kind != hone.KindBudget || end.Rounds != 1 || end.Tokens > 75_000 || len(m.asked) != 3 {
				t.Fatalf("%d requests, %+v", len(m.asked), end)
			}
			if strings.Contains(end.Why, "check passes") != (tt.says != "") || !strings.HasSuffix(end.Why, tt.says) {
				t.Errorf("it says %q", end.Why)
			}
			if diff := cmp.Diff(tt.left, sourced(end.Findings)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			must(fmt.Sscan(end.Next.Flags[0].Value, &p.tokens))
			if end = p.live(t, dir); end.Kind != hone.KindDone || end.Rounds != 2 {
				t.Fatalf("%+v", end)
			}
			prompts := m.prompts()
			holds(t, "the second loop", prompts[len(prompts)-1], "Loop 2 of 5.", "Pending next steps:\n  - mend a\n")
		})
	}
}

func sourced(findings []check.Finding) (list []string) {
	for _, f := range findings {
		list = append(list, f.Source+": "+f.Text)
	}
	return list
}

// TestExecutorIsAskedInTime: an executor whose budget comes to its end says what
// is left, or at least is known not to have said it.
func TestExecutorIsAskedInTime(t *testing.T) {
	for name, tt := range map[string]struct {
		last    model.Reply
		left    string
		stopped string
	}{
		"it answers": {say("<final_answer>\nSTATUS: INCOMPLETE\nNEXT STEPS:\n- mend a\n</final_answer>"), "pending: mend a", "final_text"},
		"it goes on": {call("read", "path", "b"), "unfinished: no report says that the task is complete or what is left", "token_budget"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files(t, dir, map[string]string{"Spec.toml": specText, "a": "zero\n"})
			m := &recorder{replies: slices.Concat([]model.Reply{withUsage(55_000, call("read", "path", "a")), tt.last},
				[]model.Reply{call("write", "path", "a", "content", "done\n"), say(incomplete)}, wrote("loop = 2\nblocker = ''\n"))}
			p := process{model: m, rounds: 5, tokens: 74_200}
			end := p.live(t, dir)
			if end.Kind != hone.KindBudget || end.Rounds != 1 || len(m.asked) != 2 {
				t.Fatalf("%d requests, %+v", len(m.asked), end)
			}
			holds(t, "the last request", whole(m.asked[1]), "The budget is nearly used up. Give your final answer now")
			if diff := cmp.Diff([]string{tt.left}, sourced(end.Findings)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			log := string(must(os.ReadFile(filepath.Join(dir, ".codescribe", "loop", "execution.toml"))))
			holds(t, "the log", log, "stop_reason = \""+tt.stopped+"\"")
			p.tokens = 1e6
			if end = p.live(t, dir); end.Kind != hone.KindDone || end.Rounds != 2 {
				t.Fatalf("%+v", end)
			}
		})
	}
}

// TestReviewIsCutShort: what a call takes beyond its reserve can be what a
// review needs, in the middle of it; the round ends without one.
func TestReviewIsCutShort(t *testing.T) {
	dir := t.TempDir()
	files(t, dir, map[string]string{"Spec.toml": specText, "a": "zero\n"})
	m := &recorder{replies: slices.Concat([]model.Reply{say(incomplete), withUsage(60_000, call("read", "path", "a"))})}
	end := process{model: m, rounds: 5, tokens: 62_000}.live(t, dir)
	if end.Kind != hone.KindBudget || end.Rounds != 1 || len(m.asked) != 2 {
		t.Fatalf("%d requests, %+v", len(m.asked), end)
	}
	rounds := 0
	home := must(journal.FindHome(dir))
	defer home.Close()
	for _, e := range must(home.Read(must(home.FindRun("last")))) {
		if e.Type == "round" {
			rounds++
		}
	}
	if rounds != 1 {
		t.Errorf("%d rounds are on record", rounds)
	}
}
