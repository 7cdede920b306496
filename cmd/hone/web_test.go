package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// webRun starts hone with arguments in a directory, and returns a browser that has opened
// the page whose address it prints, and the address.
func webRun(t *testing.T, dir string, args ...string) (*exec.Cmd, *http.Client, string) {
	t.Helper()
	c, link := startLink(t, dir, "http://127.0.0.1:", args...)
	browser, address := opened(t, link)
	return c, browser, address
}

// opened returns a browser that has opened the page of a link, and the address to which that
// led.
func opened(t *testing.T, link string) (*http.Client, string) {
	t.Helper()
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar, Timeout: time.Minute}
	got, err := browser.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if body, _ := io.ReadAll(got.Body); !strings.Contains(string(body), "<!DOCTYPE html>") {
		t.Fatalf("the link %s shows\n%s", link, body)
	}
	return browser, got.Request.URL.String()
}

// startLink starts hone with arguments in a directory, and returns the address with that
// start that it prints.
func startLink(t *testing.T, dir, start string, args ...string) (*exec.Cmd, string) {
	t.Helper()
	c := exec.Command("hone", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "HONE_TRUST=1", "XDG_CACHE_HOME="+t.TempDir(), "XDG_STATE_HOME="+filepath.Join(dir, "..", "state"))
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = c.Stdout
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	lines := bufio.NewReader(out)
	var printed strings.Builder
	for {
		line, err := lines.ReadString('\n')
		printed.WriteString(line)
		if err != nil {
			t.Fatalf("no address is printed:\n%s", &printed)
		}
		if _, link, ok := strings.Cut(strings.TrimSpace(line), start); ok && strings.Contains(link, "?token=") {
			go func() { _, _ = io.Copy(io.Discard, lines) }()
			return c, start + link
		}
	}
}

// pathOf returns the path of an address.
func pathOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Path
}

func get(t *testing.T, browser *http.Client, address string) string {
	t.Helper()
	got, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// until reads a stream until each of some texts has arrived.
func until(t *testing.T, stream *bufio.Reader, texts ...string) {
	t.Helper()
	for len(texts) > 0 {
		line, err := stream.ReadString('\n')
		texts = slices.DeleteFunc(texts, func(text string) bool { return strings.Contains(line, text) })
		if err != nil {
			t.Fatalf("%v before %q", err, texts)
		}
	}
}

// TestWebFollowsARun: the page of a run follows it from another process, from round to
// round and over its undo, and the list shows it.
func TestWebFollowsARun(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs hone")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "work")
	for name, text := range map[string]string{
		"work/a": "zero\n", "replies": `=== reply ===
{"create-or-update": {"a": "one <b>\n"}}
=== reply ===
{"create-or-update": {"a": "two\n"}}
`,
		"work/check.sh": "until test -e ../go || ! grep -q one a; do sleep 0.02; done; grep -q two a || { echo a is not two; exit 1; }\n",
	} {
		at := filepath.Join(dir, "..", name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: %v: %s", err, out)
	}
	run, own, address := webRun(t, dir, "reconcile", "-m", "script/"+filepath.Join(dir, "../replies"), "--check", "sh check.sh", "--sandbox", "none", "--web")
	if got := get(t, own, address); !strings.Contains(got, "▸ running") {
		t.Errorf("the page of the run itself:\n%s", got)
	}
	_, browser, home := webRun(t, dir, "web")
	if got := get(t, browser, home); !strings.Contains(got, `<tr data-result="running">`) {
		t.Errorf("the list:\n%s", got)
	}
	id := address[strings.LastIndex(address, "/")+1:]
	got, err := browser.Get(home + "stream/" + id)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	stream := bufio.NewReader(got.Body)
	until(t, stream, "one \\u0026lt;b\\u0026gt;")
	if err := os.WriteFile(filepath.Join(dir, "../go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	until(t, stream, "a is not two", "✓ done")
	if err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := own.Get(address); err == nil {
		t.Error("the page of the run outlives it")
	}
	undo := exec.Command("hone", "undo", "last")
	undo.Dir, undo.Env = dir, run.Env
	if out, err := undo.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	until(t, stream, "- undone")
	if got := get(t, browser, home); !strings.Contains(got, `<tr data-result="undone">`) {
		t.Errorf("the list:\n%s", got)
	}
	page := get(t, browser, home+"run/"+id)
	for _, want := range []string{"the check passes", "a is not two", `<span class="del">-one &lt;b&gt;</span>`, `<span class="add">+two</span>`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q:\n%s", want, page)
		}
	}
	if got := get(t, browser, home+"run/"+id+"x"); !strings.Contains(got, "there is no such page") {
		t.Errorf("a page that does not exist:\n%s", got)
	}
}

// TestWebEnds: Ctrl-C ends the server in order.
func TestWebEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs hone")
	}
	t.Parallel()
	dir := conversationRun(t)
	c, browser, address := webRun(t, dir, "web", "last")
	if got := get(t, browser, address); !strings.Contains(got, "<title>✗ out of rounds test: ") {
		t.Errorf("%s", got)
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{"web", "nonsense"}, {"web", "a", "b"}} {
		out, err := exec.Command("hone", append(args, "-C", dir)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "hone: error: ") || strings.Contains(string(out), "[") {
			t.Errorf("%v: %v, %s", args, err, out)
		}
	}
	if out, err := exec.Command("hone", "web", "last", "-C", t.TempDir()).CombinedOutput(); fmt.Sprint(err) != "exit status 2" {
		t.Errorf("without runs: %v, %s", err, out)
	}
}

// TestWebAttempts: the page of a run of attempts leads to the pages of the attempts, whose
// journals are in copies, and they lead back.
func TestWebAttempts(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs hone")
	}
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "work")
	reply := func(text string) string {
		return "=== reply ===\n=== call read ===\n{\"path\": \"a\"}\n=== call write ===\n{\"path\": \"a\", \"content\": \"" + text + "\"}\n=== reply ===\nDone.\n"
	}
	for name, text := range map[string]string{"a": "zero", "check.sh": "grep -q two a || { echo a is not two; exit 1; }\n", "../bad": reply("one"), "../good": reply("two")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command("hone", "fix", "--attempts", "2", "-m", "script/../bad", "-m", "script/../good", "--rounds", "1", "--check", "sh check.sh", "--sandbox", "none")
	run.Dir = dir
	run.Env = append(os.Environ(), "HONE_TRUST=1", "XDG_CACHE_HOME="+t.TempDir(), "XDG_STATE_HOME="+filepath.Join(dir, "..", "state"))
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, browser, address := webRun(t, dir, "web", "last")
	group := get(t, browser, address)
	home := address[:strings.LastIndex(address, "run/")]
	_, link, ok := strings.Cut(group, `<tr class="applied"><th scope="row" class="name"><a href="`+pathOf(t, home)+`run/`)
	id, _, _ := strings.Cut(link, `"`)
	attempt := get(t, browser, home+"run/"+id)
	if back := `<p><a href="` + pathOf(t, address) + `">attempt 2 of run `; !ok || !strings.Contains(attempt, back) || !strings.Contains(attempt, `<span class="good">✓ done</span> fix`) {
		t.Errorf("want %s on the page of attempt %q:\n%s\nto which this leads:\n%s", back, id, attempt, group)
	}
	// The other attempt is applied, and that is undone.
	links := map[int]string{2: id}
	applied := func(number int) string {
		return `<tr class="applied"><th scope="row" class="name"><a href="` + pathOf(t, home) + `run/` + links[number] + `"`
	}
	_, first, _ := strings.Cut(group, `<tr><th scope="row" class="name"><a href="`+pathOf(t, home)+`run/`)
	first, _, _ = strings.Cut(first, `"`)
	links[1] = first
	for i, args := range [][]string{{"take", first}, {"undo", "last"}} {
		then := exec.Command("hone", args...)
		then.Dir, then.Env = dir, run.Env
		if out, err := then.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		if got := get(t, browser, address); !strings.Contains(group, applied(2)) || !strings.Contains(got, applied(i+1)) || strings.Contains(got, applied(2-i)) {
			t.Errorf("after %v:\n%s", args, got)
		}
	}
	// A server that was not asked for the run of the attempts finds them too.
	_, browser, home = webRun(t, dir, "web")
	if got := get(t, browser, home+"run/"+id); got == "" || !strings.Contains(got, "attempt 2 of run ") {
		t.Errorf("the page of the attempt alone:\n%s", got)
	}
}

// TestWebEvaluations: the list has the files with results, and the page of one grows with it.
func TestWebEvaluations(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs hone")
	}
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "bench", "cases.results.jsonl")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	add := func(line string) {
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.WriteString(line); err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add(`{"key":"a","case":"<b>","model":"m","time":1,"passed":true,"why":"why not"}` + "\n" + `{"key":"b","ca`)
	if err := os.Symlink(file, filepath.Join(dir, "link.results.jsonl")); err != nil {
		t.Skip("SKIPPED: ", err)
	}
	_, browser, home := webRun(t, dir, "web")
	if got := get(t, browser, home); !strings.Contains(got, `<a href="`+pathOf(t, home)+`eval/0/bench/cases.results.jsonl">bench/cases</a>`) || strings.Contains(got, "link.results") {
		t.Errorf("the list:\n%s", got)
	}
	const page = "eval/0/bench/cases.results.jsonl"
	if got := get(t, browser, home+page); !strings.Contains(got, `<th scope="row">&lt;b&gt;</th><td><span class="good" title="try 1: why not, 0 rounds, 0 tokens">`) {
		t.Errorf("the page of the evaluation:\n%s", got)
	}
	stream, err := browser.Get(home + "stream/" + page)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewReader(stream.Body)
	until(t, lines, "why not")
	add(`se":"c","model":"n","time":1,"why":"too late"}` + "\n")
	until(t, lines, "too late")
	for _, name := range []string{"eval/0/link.results.jsonl", "eval/0/../x", "eval/1/bench/cases.results.jsonl", "eval/x"} {
		if got := get(t, browser, home+name); !strings.Contains(got, "there is no such page") && !strings.Contains(got, "This page is for the user who started hone web") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// TestWebReplyArrives: the page of --web shows a reply while it arrives, without keys that
// arrive in two parts. Another process's page says for whom the run waits.
func TestWebReplyArrives(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs hone")
	}
	const key = "sk-canary-7f3e9b21c4d8"
	finish := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(text, end string) {
			delta, _ := json.Marshal(text)
			fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%s}%s}]}\n\n", delta, end)
			_ = http.NewResponseController(w).Flush()
		}
		send("I <b>look</b> at "+key[:9], "")
		send(key[9:]+" and then some more words to come.\n", "")
		select {
		case <-finish:
		case <-r.Context().Done():
		}
		send("That is all.", `,"finish_reason":"stop"`)
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(service.Close)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("zero\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OPENAI_API_KEY", key)
	run, own, address := webRun(t, dir, "fix", "-m", "openai/m", "--wire", "chat", "--base-url", service.URL, "--check", "grep two a", "--rounds", "1", "--sandbox", "none", "--web")
	at := address[:strings.LastIndex(address, "run/")]
	got, err := own.Get(at + "stream/" + address[len(at)+len("run/"):])
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	until(t, bufio.NewReader(got.Body), "more words")
	page := get(t, own, address)
	for _, want := range []string{`<section id="wait">`, ` replies <span class="dim">openai/m, asked at `, "I &lt;b&gt;look&lt;/b&gt; at ", "more words"} {
		if !strings.Contains(page, want) {
			t.Errorf("want %s in\n%s", want, page)
		}
	}
	if strings.Contains(page, key[:9]) || strings.Contains(page, key[9:]) {
		t.Error("the page shows the key")
	}
	_, other, home := webRun(t, dir, "web")
	if page := get(t, other, home+address[len(at):]); !strings.Contains(page, "waiting for fixer <span class=\"dim\">openai/m, asked at ") || strings.Contains(page, "more words") {
		t.Errorf("the page of another process:\n%s", page)
	}
	close(finish)
	_ = run.Wait() // its round is used up
	if page := get(t, other, home+address[len(at):]); !strings.Contains(page, `<section id="wait" hidden>`) || !strings.Contains(page, "That is all.") {
		t.Errorf("the page after the reply:\n%s", page)
	}
}

// TestWebDamage: the page of a run that cannot be read says what is damaged, where, and what
// to type. Pages that do not exist look like the others.
func TestWebDamage(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs hone")
	}
	t.Parallel()
	dir := conversationRun(t)
	journals, err := filepath.Glob(filepath.Join(dir, ".hone", "runs", "*.jsonl"))
	if err != nil || len(journals) != 1 {
		t.Fatal(journals, err)
	}
	whole, err := os.ReadFile(journals[0])
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte) {
		if err := os.WriteFile(journals[0], data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, browser, home := webRun(t, dir, "web")
	run := strings.TrimSuffix(filepath.Base(journals[0]), ".jsonl")
	address := home + "run/" + run
	says := func(address string, texts ...string) {
		t.Helper()
		page := html.UnescapeString(get(t, browser, address))
		for _, text := range append(texts, "<!DOCTYPE html>", `<nav><a href="`+pathOf(t, home)+`">runs</a>`) {
			if !strings.Contains(page, text) {
				t.Errorf("the page does not say %q:\n%s", text, page)
			}
		}
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	write(bytes.Join(slices.Delete(slices.Clone(lines), 3, 4), nil))
	says(address, "<h1>This page cannot be shown</h1>", journals[0]+": line 4: found event 5 in place of event 4", "\nnext: another program changed the journal; restore the file from a backup, or move it away: mv "+journals[0]+" "+journals[0]+".damaged")
	write(bytes.Replace(whole, []byte(`"v":1,`), []byte(`"v":2,`), 1))
	says(address, "<h1>This page cannot be shown</h1>", "\nnext: another version of hone wrote this journal")
	says(home+"run/nonsense", "<h1>Not found</h1>", "there is no such page")
	write(whole)
	if err := os.Remove(filepath.Join(dir, ".hone", "runs", run+".pack")); err != nil {
		t.Fatal(err)
	}
	_, browser, home = webRun(t, dir, "web")
	says(home+"run/"+run, "<h1>This page cannot be shown</h1>", "object")
}
