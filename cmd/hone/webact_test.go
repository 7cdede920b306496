package main

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"hone/internal/crashtest/waittest"
	"hone/journal"
)

// acting is a directory with a run, and a page on which the user can act.
type acting struct {
	t       *testing.T
	dir     string
	env     []string
	server  *exec.Cmd // hone web
	browser *http.Client
	home    string // the address of the list
	run     string // the id of the run
}

// write writes files below the parent of the directory: names and contents alternate.
func (w *acting) write(files ...string) {
	w.t.Helper()
	for i := 0; i < len(files); i += 2 {
		at := filepath.Join(w.dir, "..", files[i])
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(files[i+1]), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *acting) read(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// hone runs hone in the directory. It must exit with a status.
func (w *acting) hone(status int, args ...string) string {
	w.t.Helper()
	c := exec.Command("hone", args...)
	c.Dir, c.Env = w.dir, w.env
	out, _ := c.CombinedOutput()
	if got := c.ProcessState.ExitCode(); got != status {
		w.t.Fatalf("hone %v exits with %d, want %d:\n%s", args, got, status, out)
	}
	return string(out)
}

// newActing returns a directory in which a run of reconcile, whose model gives the replies,
// has ended with a status, and its page.
func newActing(t *testing.T, status int, replies []string, files []string, args ...string) *acting {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs hone")
	}
	t.Parallel()
	w := &acting{t: t, dir: filepath.Join(t.TempDir(), "work")}
	w.write(append([]string{"replies", "=== reply ===\n" + strings.Join(replies, "\n=== reply ===\n") + "\n"}, files...)...)
	if out, err := exec.Command("git", "init", "-q", w.dir).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: %v: %s", err, out)
	}
	c, browser, home := webRun(t, w.dir, "web", "--allow-actions")
	w.server, w.env, w.browser, w.home = c, c.Env, browser, home
	w.browser.CheckRedirect = notRedirected
	w.hone(status, append([]string{"reconcile", "-m", "script/" + filepath.Join(w.dir, "../replies"), "--sandbox", "none"}, args...)...)
	w.run = regexp.MustCompile(`"run":"([^"]+)"`).FindStringSubmatch(w.hone(0, "runs", "--json"))[1]
	return w
}

// notRedirected keeps a browser at the answer to a form.
func notRedirected(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// page returns the page of the run without its rounds.
func (w *acting) page() string {
	w.t.Helper()
	page, _, _ := strings.Cut(get(w.t, w.browser, w.home+"run/"+w.run), `<details id="r`)
	return html.UnescapeString(page)
}

// until waits for a text on the page of the run.
func (w *acting) until(text string) {
	w.t.Helper()
	if !waittest.Until(func() bool { return strings.Contains(w.page(), text) }) {
		w.t.Fatalf("the page does not say %q:\n%s", text, w.page())
	}
}

// act sends a form, and returns the page of the run afterwards.
func (w *acting) act(action string, form url.Values) string {
	w.t.Helper()
	w.send(action, form)
	return w.page()
}

// send sends a form, and expects to be led to the page of the run.
func (w *acting) send(action string, form url.Values) {
	w.t.Helper()
	got, err := w.browser.PostForm(w.home+"act/"+action+"/"+w.run, form)
	if err != nil {
		w.t.Fatal(err)
	}
	body, _ := io.ReadAll(got.Body)
	got.Body.Close()
	if got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != pathOf(w.t, w.home)+"run/"+w.run {
		w.t.Fatalf("%s: %s to %q: %s", action, got.Status, got.Header.Get("Location"), body)
	}
}

// field returns the first group of an expression in a page.
func field(t *testing.T, page, expression string) string {
	t.Helper()
	m := regexp.MustCompile(expression).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("no %s in\n%s", expression, page)
	}
	return m[1]
}

// TestWebAnswers: a pending question is answered on the page, with the change in view; the
// answer loses against an edit of the file, and does not go to another question.
func TestWebAnswers(t *testing.T) {
	w := newActing(t, 4, []string{`{"create-or-update": {"specs/s.md": "New <b>.\n"}}`}, []string{"work/specs/s.md", "Old.\n"})
	page := w.page()
	digest := field(t, page, `<button name="([0-9a-f]{64})" value="yes">`)
	if strings.Contains(page, "waits for your decision") || strings.Contains(page, "--answer") || strings.Count(page, "changes to it need approval") != 1 {
		t.Errorf("the page asks twice:\n%s", page)
	}
	_, other, home := webRun(t, w.dir, "web")
	if page := get(t, other, home+"run/"+w.run); !strings.Contains(page, "specs/s.md waits for your decision") || !strings.Contains(page, "--answer "+digest[:12]+"=yes") {
		t.Errorf("a page that only shows the run does not say how to answer:\n%s", page)
	}
	for _, want := range []string{"Change <b>specs/s.md</b>?", "changes to it need approval", `<span class="add">+New <b>.</span>`, `<span class="del">-Old.</span>`, "resume this run"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	if got := get(t, w.browser, w.home+"act/answer/"+w.run+"?"+digest+"=yes"); !strings.Contains(got, "Method Not Allowed") || w.read("specs/s.md") != "Old.\n" {
		t.Errorf("GET acts: %s", got)
	}
	w.write("work/specs/s.md", "Mine.\n")
	if page = w.act("answer", url.Values{digest: {"yes"}}); !strings.Contains(page, "the answer about specs/s.md is outdated: the file has changed since the question was asked") {
		t.Errorf("an answer about an edited file:\n%s", page)
	}
	if w.read("specs/s.md") != "Mine.\n" {
		t.Error("the user's edit is gone")
	}
	w.write("work/specs/s.md", "Old.\n")
	for form, want := range map[string]string{
		"":                                    "no question was answered",
		digest + "=perhaps":                   "is not DIGEST=yes or DIGEST=no",
		strings.Repeat("0", 64) + "=yes":      "no question of the run has the digest 0000",
		"--max-tokens=1":                      "is not DIGEST=yes or DIGEST=no",
		digest[:8] + "=yes&" + digest + "=no": "says two things",
	} {
		values, _ := url.ParseQuery(form)
		if page = w.act("answer", values); !strings.Contains(page, want) || w.read("specs/s.md") != "Old.\n" {
			t.Errorf("the form %q:\n%s", form, page)
		}
	}
	w.act("answer", url.Values{digest: {"yes"}})
	w.until("✓ done")
	if got := w.read("specs/s.md"); got != "New <b>.\n" {
		t.Errorf("the file is %q", got)
	}
	if got := w.hone(0, "show", "last", "--json"); !strings.Contains(got, `"approved":true,"by":"user"`) {
		t.Errorf("the answer is not recorded:\n%s", got)
	}
	if page = w.page(); strings.Contains(page, "/act/answer/") || strings.Contains(page, "outdated") {
		t.Errorf("the page still asks, or still says what was refused:\n%s", page)
	}
}

// TestWebLongQuestion: nobody approves what the page does not show without being told.
func TestWebLongQuestion(t *testing.T) {
	w := newActing(t, 4, []string{`{"create-or-update": {"specs/s.md": "# New\n\nNew.\n"}}`}, []string{"work/specs/s.md", strings.Repeat("Old.\n", 60_000)})
	page := w.page()
	if want := "of this change: to see all of it, answer in a terminal"; !strings.Contains(page, want) {
		t.Errorf("the page of %d bytes does not say %q", len(page), want)
	}
}

// TestWebAnswersSeveral: a form has a choice for each question; one that is not answered
// stays open.
func TestWebAnswersSeveral(t *testing.T) {
	w := newActing(t, 4, []string{`{"create-or-update": {"specs/a.md": "New.\n", "specs/b.md": "New.\n", "specs/c.md": "New.\n"}}`},
		[]string{"work/specs/a.md", "Old.\n", "work/specs/b.md", "Old.\n", "work/specs/c.md", "Old.\n"})
	form := url.Values{}
	for i, m := range regexp.MustCompile(`<input type="radio" name="([0-9a-f]{64})" value="yes"`).FindAllStringSubmatch(w.page(), -1) {
		if i < 2 {
			form.Set(m[1], []string{"yes", "no"}[i])
		}
	}
	w.act("answer", form)
	w.until("<pre>1 question is open: specs/c.md")
	if a, b, c := w.read("specs/a.md"), w.read("specs/b.md"), w.read("specs/c.md"); a != "New.\n" || b != "Old.\n" || c != "Old.\n" {
		t.Errorf("%q %q %q", a, b, c)
	}
}

// TestWebAnswersTheModel: what the model asks has a line of its own, and the next round gets
// the answer (ruling B15).
func TestWebAnswersTheModel(t *testing.T) {
	w := newActing(t, 1, []string{`{"create-or-update": {"a": "80\n"}, "questions": "Which <port>?"}`, `{"create-or-update": {"a": "81\n"}}`, `{"create-or-update": {"a": "81\n"}}`, `{"create-or-update": {"a": "8080\n"}}`},
		[]string{"work/a", "old\n"}, "--check", "grep -qx 8080 a", "--patience", "1")
	page := w.page()
	digest := field(t, page, `<input name="([0-9a-f]{64})"`)
	if !strings.Contains(page, "Which <port>?") {
		t.Errorf("the page does not ask:\n%s", page)
	}
	if page = w.act("answer", url.Values{digest: {" "}}); !strings.Contains(page, "no question was answered") {
		t.Errorf("an empty answer:\n%s", page)
	}
	w.act("answer", url.Values{digest: {"8080"}})
	w.until("✓ done")
	if got := w.read("a"); got != "8080\n" {
		t.Errorf("the file is %q", got)
	}
}

// TestWebResumes: a run whose budget is used up is resumed with a raised limit; a limit that
// is too low is refused, with what to type.
func TestWebResumes(t *testing.T) {
	w := newActing(t, 3, []string{`{"create-or-update": {"a": "new\n"}}`}, []string{"work/a", "old\n"}, "--max-tokens", "10")
	if page := w.page(); !strings.Contains(page, `<input name="max-tokens" value="10"`) || strings.Contains(page, `name="max-cost"`) {
		t.Errorf("the form:\n%s", page)
	}
	for form, want := range map[string]string{
		"max-tokens=5":    "next: hone resume " + w.run,
		"max-tokens=many": "--max-tokens many is not a whole number",
		"max-tokens=-5":   "--max-tokens: -5 is too small",
	} {
		values, _ := url.ParseQuery(form)
		w.act("resume", values)
		w.until(want)
		if w.read("a") != "old\n" {
			t.Fatal("the run went on")
		}
	}
	w.act("resume", url.Values{"max-tokens": {"5000000"}, "rounds": {"7"}})
	w.until("✓ done")
	if got := w.read("a"); got != "new\n" {
		t.Errorf("the file is %q", got)
	}
}

// TestWebStops: the page stops the process of another hone, and a run that it has resumed;
// the end of the server does so, too.
func TestWebStops(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: this system does not tell who has a lock")
	}
	w := newActing(t, 1, []string{`{"create-or-update": {"a": "new\n"}}`, `{"create-or-update": {"a": "newer\n"}}`}, []string{"work/a", "old\n", "work/check.sh", "test -e ../fast && exit 1; touch checking; sleep 600", "fast", ""},
		"--check", "sh check.sh", "--rounds", "1")
	if page := w.act("stop", nil); !strings.Contains(page, "no process works on this run") {
		t.Errorf("a run that is over:\n%s", page)
	}
	if err := os.Remove(filepath.Join(w.dir, "../fast")); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("hone", "resume", "last", "--rounds", "2")
	var said strings.Builder
	other.Dir, other.Env, other.Stdout, other.Stderr = w.dir, w.env, &said, &said
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _ = other.Process.Kill(); t.Failed() {
			_ = other.Wait()
			t.Logf("the other process said:\n%s", &said)
		}
	})
	waittest.Until(func() bool { // what is stopped before it resumes the run records no end
		_, err := os.Stat(filepath.Join(w.dir, "checking"))
		return err == nil
	})
	w.until("Stop this run")
	w.act("stop", nil)
	_ = other.Wait()
	if got := other.ProcessState.ExitCode(); got != 130 {
		t.Errorf("the other process exits with %d", got)
	}
	w.until("interrupted")
	w.act("resume", nil)
	w.until("Stop this run")
	if page := w.act("resume", nil); !strings.Contains(page, "another hone is working here, on run "+w.run) {
		t.Errorf("a second child:\n%s", page)
	}
	w.act("stop", nil)
	w.until("resume this run")
}

// TestWebEndsARun: Ctrl-C and SIGTERM end the server in order while it resumes a run: the run
// is interrupted, and can be resumed.
func TestWebEndsARun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: there are no such signals")
	}
	w := newActing(t, 1, []string{`{"create-or-update": {"a": "new\n"}}`, `{"create-or-update": {"a": "newer\n"}}`}, []string{"work/a", "old\n", "work/check.sh", "test -e ../fast && exit 1; touch ../checking; sleep 600", "fast", ""},
		"--check", "sh check.sh", "--rounds", "1")
	checking := filepath.Join(w.dir, "../checking")
	for i, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if i > 0 {
			w.server, w.browser, w.home = webRun(t, w.dir, "web", "--allow-actions")
			w.browser.CheckRedirect = notRedirected
		}
		_ = os.Remove(filepath.Join(w.dir, "../fast"))
		w.act("resume", url.Values{"rounds": {"2"}})
		waittest.Until(func() bool { return os.Remove(checking) == nil })
		if page := w.page(); !strings.Contains(page, "▸ running") {
			t.Fatalf("%v: the run does not work:\n%s", signal, page)
		}
		if err := w.server.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := w.server.Wait(); err != nil {
			t.Errorf("%v: the server: %v", signal, err)
		}
		if got := w.hone(0, "runs", "--json"); !strings.Contains(got, `"result":"interrupted","exit":130,`) {
			t.Errorf("%v: %s", signal, got)
		}
	}
	w.write("fast", "")
	if got := w.hone(1, "resume", "last"); !strings.Contains(got, "2 of 2 rounds used") || w.read("a") != "newer\n" {
		t.Errorf("the run goes on with\n%s", got)
	}
}

// TestWebUndoes: an undo does what its preview said, or nothing.
func TestWebUndoes(t *testing.T) {
	w := newActing(t, 0, []string{`{"create-or-update": {"a": "new\n", "b": "new\n"}}`}, []string{"work/a", "old\n"})
	preview := func() string { return html.UnescapeString(get(t, w.browser, w.home+"preview/undo/"+w.run)) }
	if page := w.page(); !strings.Contains(page, "/preview/undo/"+w.run) {
		t.Fatalf("no way to the preview:\n%s", page)
	}
	page := preview()
	plan := field(t, page, `<button name="plan" value="([0-9a-f]{64})">`)
	if !strings.Contains(page, "<code>a</code>") || !strings.Contains(page, "<code>b</code>") || w.read("a") != "new\n" {
		t.Errorf("the preview:\n%s", page)
	}
	w.write("work/a", "mine\n")
	for _, form := range []url.Values{{"plan": {plan}}, {"plan": {""}}, nil} {
		if page = w.act("undo", form); !strings.Contains(page, "have changed since the preview") || w.read("a") != "mine\n" || w.read("b") != "new\n" {
			t.Errorf("an outdated plan is carried out:\n%s", page)
		}
	}
	if page = preview(); !strings.Contains(page, "these files are in the way") || !strings.Contains(page, "it was changed since") || strings.Contains(page, "<button") || !strings.Contains(page, "--force") {
		t.Errorf("the preview with a conflict:\n%s", page)
	}
	w.write("work/a", "new\n")
	if page = w.act("undo", url.Values{"plan": {field(t, preview(), `name="plan" value="([0-9a-f]{64})"`)}}); !strings.Contains(page, "undone: 2 files are as they were before the run") {
		t.Errorf("after the undo:\n%s", page)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "b")); w.read("a") != "old\n" || err == nil {
		t.Error("the files are not restored")
	}
	if page = preview(); !strings.Contains(page, "Nothing to undo") {
		t.Errorf("a second undo:\n%s", page)
	}
}

// TestWebNeedsTrust: a run that the user has not recorded here is neither resumed nor undone,
// and the page shows what to type.
func TestWebNeedsTrust(t *testing.T) {
	w := newActing(t, 1, []string{`{"create-or-update": {"a": "new\n"}}`}, []string{"work/a", "old\n"}, "--check", "exit 1", "--rounds", "1")
	if err := os.RemoveAll(filepath.Join(w.dir, "../state")); err != nil {
		t.Fatal(err)
	}
	want := "hone trust " + journal.ShortRun(w.run)
	w.act("resume", url.Values{"rounds": {"2"}})
	w.until(want)
	w.act("stop", nil) // which replaces what the page says
	got, err := w.browser.Get(w.home + "preview/undo/" + w.run)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if got.StatusCode != http.StatusSeeOther || !strings.Contains(w.page(), want) {
		t.Errorf("%s, and the page is\n%s", got.Status, w.page())
	}
	if page := w.act("undo", url.Values{"plan": {""}}); !strings.Contains(page, want) || w.read("a") != "new\n" {
		t.Errorf("an undo:\n%s", page)
	}
}
