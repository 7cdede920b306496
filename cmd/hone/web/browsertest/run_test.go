package browsertest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// hostile does something if a page takes it for HTML.
const hostile = `<script>alert(1)</script><img src=x onerror=alert(2)>"'--><b>`

// writes returns replies that read cart.go and write a file, as scripted models have them.
func writes(words, name, text string) string {
	args, _ := json.Marshal(map[string]string{"path": name, "content": text})
	return fmt.Sprintf("=== reply ===\n%s\n=== call read ===\n{\"path\": \"cart.go\"}\n=== reply ===\n=== call write ===\n%s\n=== reply ===\nI have changed %s.\n", words, args, name)
}

// waiting is a check that waits in each round until the test lets it go on.
const waiting = `n=$(cat ../n 2>/dev/null || echo 0); n=$((n+1)); echo $n >../n
until test -e ../go$n; do sleep 0.05; done
test $n -ge 4 || { echo "# shop"; echo "./cart.go:3:2: step $n: <script>alert(3)</script> <svg onload=alert(4)>"; echo "./cart.go:9:1: the total is wrong"; exit 1; }
`

// cart is a file of a program, as some round writes it.
func cart(round int) string {
	return fmt.Sprintf("package cart\n\n// Total returns the price of all items.\nfunc Total(items []Item) int {\n\tsum := %d\n\tfor _, i := range items {\n\t\tsum += i.Price // %s\n\t}\n\treturn sum\n}\n", round, hostile)
}

// TestLive watches a run from its first round to its last and its undo, without a reload,
// while hone is killed and resumed. A reload in between changes nothing, and no text of
// the run does anything.
func TestLive(t *testing.T) {
	b := browser(t)
	p := newPlace(t, "cart.go", cart(0), "go.mod", "module shop\n", "../check.sh", waiting,
		"../replies", writes(hostile, "cart.go", cart(1))+writes("another try", "cart.go", cart(2))+writes("a third", `"><img src=x onerror=alert(5)>.txt`, "x\n")+writes("the last", "cart.go", cart(4)))
	address, _ := p.web()
	b.open(address)
	b.says("Runs", "No runs yet.")
	b.review("empty")
	run := p.start("fix", "-m", "script/../replies", "--check", "sh ../check.sh", "--sandbox", "none", "-q")
	b.says("running", "fix")
	b.do(chromedp.Click(chromedp.CSS("#list a")), chromedp.WaitVisible(chromedp.CSS("#run")))
	b.do(chromedp.Evaluate[chromedp.Void]("window.loaded = true"))
	b.says("running")
	p.write("../go1", "")
	b.says("step 1: <script>alert(3)</script>", "the total is wrong")
	p.write("../go2", "")
	b.says("step 2: <script>")
	b.review("live")
	if !value[bool](b, "window.loaded === true") {
		t.Error("the page was loaded again")
	}
	b.do(chromedp.Reload())
	b.says("running", "step 2: <script>")
	b.do(chromedp.Evaluate[chromedp.Void]("window.loaded = true"))
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait()
	b.says("without a result")
	b.lacks("running")
	b.review("killed")
	p.write("../n", "2\n")
	p.write("../go3", "")
	p.write("../go4", "")
	p.run([]int{0}, "resume", "last", "-q")
	b.says("done", "round 3")
	b.do(chromedp.Evaluate[chromedp.Void]("document.getElementById('r2-log').open = true"))
	b.do(chromedp.SendKeys(chromedp.ID("r2-find"), "TOTAL"))
	b.says("1 of 4 lines", "./cart.go:9:1: the total is wrong")
	if log := value[string](b, "document.querySelector('#r2-log pre').textContent"); strings.Contains(log, "step 3") {
		t.Errorf("the log shows lines that do not match:\n%s", log)
	}
	b.lacks("+0") // the lines of later rounds are counted, too
	b.review("done")
	p.run([]int{0}, "undo", "last")
	b.says("undone")
	if !value[bool](b, "window.loaded === true") {
		t.Error("the page was loaded again")
	}
	if n := value[int](b, "document.querySelectorAll('main script, main img, main svg[onload], main b b').length"); n > 0 {
		t.Errorf("%d texts have become elements", n)
	}
	b.do(chromedp.Click(chromedp.CSS("nav a")), chromedp.WaitVisible(chromedp.CSS("#runs")))
	b.review("list")
	b.do(chromedp.SendKeys(chromedp.ID("search"), "nothing like it"))
	if value[bool](b, "document.querySelector('#list tbody tr').checkVisibility()") {
		t.Error("the search finds a run that does not match")
	}
}

// painted is when the browser first showed something of the page, in milliseconds.
const painted = `new Promise(done => {
	const look = () => {
		const paint = performance.getEntriesByName("first-contentful-paint")[0];
		if (paint) done(paint.startTime); else setTimeout(look, 20);
	};
	look();
})`

// TestLong measures the page of 150 rounds and about 3 000 events: most rounds are only listed.
func TestLong(t *testing.T) {
	b := browser(t)
	var replies strings.Builder
	for i := range 150 {
		reply, _ := json.Marshal(map[string]any{"create-or-update": map[string]string{"cart.go": cart(i)}})
		fmt.Fprintf(&replies, "=== reply ===\n%s\n", reply)
	}
	p := newPlace(t, "cart.go", "", "../check.sh", "read n <../n; n=$((n+1)); echo $n >../n; test $n -ge 150 || { echo \"cart.go:$((n%9+1)): step $n\"; exit 1; }\n", "../n", "0\n", "../replies", replies.String())
	p.run([]int{0}, "reconcile", "-m", "script/../replies", "--check", "sh ../check.sh", "--sandbox", "none", "--rounds", "150", "--patience", "200", "-q")
	address, _ := p.web("last")
	b.open(address)
	b.says("Here are the details of the last 30 rounds.", "round 150", "round 100") // which is only listed
	if value[bool](b, "document.getElementById('r120') !== null") {
		t.Error("the page has the details of more than 30 rounds")
	}
	t.Logf("page: %.0f bytes, %d elements, first paint after %.0f ms, loaded after %.0f ms",
		value[float64](b, "performance.getEntriesByType('navigation')[0].encodedBodySize"), value[int](b, "document.querySelectorAll('*').length"),
		value[float64](b, painted), value[float64](b, "performance.getEntriesByType('navigation')[0].loadEventEnd"))
	b.review("long")
}

// TestOtherPorts: the browser sends nothing of its session with hone web to another port.
func TestOtherPorts(t *testing.T) {
	b := browser(t)
	headers := make(chan http.Header, 10)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "another page")
		if r.URL.Path == "/run/one" {
			headers <- r.Header
		}
	}))
	defer other.Close()
	address, _ := newPlace(t).web()
	b.open(address)
	b.says("Runs")
	home, away := value[string](b, "location.href"), other.URL+"/run/one"
	for _, visit := range []func(){
		func() { b.open(away) },
		func() { b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf("void (location = %q)", away))) },
	} {
		visit()
		if got := <-headers; got["Cookie"] != nil || got["Referer"] != nil {
			t.Errorf("another port is sent %q and %q", got["Cookie"], got["Referer"])
		}
		b.says("another page")
		b.open(home) // the session goes on
		b.says("Runs")
	}
}

// TestSignIn: a browser on another machine signs in with the password.
func TestSignIn(t *testing.T) {
	b := browser(t)
	p := newPlace(t)
	p.write("../password", "correct horse battery\n")
	if out, err := exec.Command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1", "-subj", "/CN=hone",
		"-addext", "subjectAltName=IP:127.0.0.1", "-keyout", filepath.Join(p.dir, "../key"), "-out", filepath.Join(p.dir, "../cert")).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: openssl: %v: %s", err, out)
	}
	if err := os.Chmod(filepath.Join(p.dir, "../password"), 0o600); err != nil {
		t.Fatal(err)
	}
	address, _ := p.web("--listen", "127.0.0.1:0", "--tls-cert", "../cert", "--tls-key", "../key", "--password-file", "../password")
	address, _, _ = strings.Cut(address, "?")
	b.open(address)
	b.says("Password")
	b.review("sign-in")
	b.do(chromedp.SendKeys(chromedp.CSS("input[type=password]"), "wrong horse\r"))
	b.says("The password is wrong.")
	b.do(chromedp.SendKeys(chromedp.CSS("input[type=password]"), "correct horse battery\r"))
	b.says("Runs")
}
