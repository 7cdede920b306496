// Package browsertest tests the pages of hone web in Chromium. It is a separate module,
// so that hone does not get the packages that drive a browser.
//
// Screenshots are saved in $HONE_SCREENSHOTS if it is set.
package browsertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// tab is a page in the browser. Whatever goes wrong fails its test.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string // dialogs, errors of scripts, and breaches of the page's policy
}

// closeChromium ends the browser of all tests, if one was started.
var closeChromium = func() {}

// chromium starts the browser of all tests. The error says why there is none.
var chromium = sync.OnceValues(func() (context.Context, error) {
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		return nil, errors.New("there is no Chromium; make needs installs Debian's")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("ignore-certificate-errors", true))
	allocator, _ := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, _ := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("%s does not start: %v", program, err)
	}
	closeChromium = func() { _ = chromedp.Cancel(ctx) }
	return ctx, nil
})

// browser opens a tab that shares no cookies and no storage with others. The test fails at its end if a page opened a
// dialog or had an error.
func browser(t *testing.T) *tab {
	t.Helper()
	shared, err := chromium()
	if err != nil {
		t.Skip("SKIPPED: ", err)
	}
	ctx, cancel := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, b.notice); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, fault := range b.faults {
			t.Error(fault)
		}
		_ = chromedp.Cancel(ctx)
	})
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, log.Enable, cdp.Empty{})
		return err
	}))
	return b
}

// notice keeps what must not happen on a page.
func (b *tab) notice(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *page.EventJavascriptDialogOpening:
		b.faults = append(b.faults, "a dialog opens: "+e.Message)
	case *runtime.EventExceptionThrown:
		b.faults = append(b.faults, "a script fails: "+e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		if e.Entry.Source == "security" || e.Entry.Source == "violation" {
			b.faults = append(b.faults, "the browser says: "+e.Entry.Text)
		}
	}
}

// patience is how long a test waits for what must happen. Only a test that fails reaches it.
const patience = 5 * time.Minute

// do runs steps.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx); err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("%v\n%.3000s", err, b.text())
	}
}

// open shows an address.
func (b *tab) open(address string) { b.t.Helper(); b.do(chromedp.Navigate(address)) }

// value evaluates JavaScript.
func value[T any](b *tab, script string) T {
	b.t.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return got
}

// text returns what the page says.
func (b *tab) text() string {
	got, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	return got
}

// says waits until the page says each of some texts, without a reload.
func (b *tab) says(texts ...string) {
	b.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		got := b.text()
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(got, text) }) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.t.Fatalf("the page does not say %q:\n%.3000s", texts, b.text())
}

// lacks fails if the page says a text.
func (b *tab) lacks(text string) {
	b.t.Helper()
	if got := b.text(); strings.Contains(got, text) {
		b.t.Errorf("the page says %q:\n%s", text, got)
	}
}

// look makes the browser as wide as a device, light or dark.
func (b *tab) look(width int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, 844), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
		return err
	}))
	// A busy browser has the new width, and the styles of a new page, only some time later.
	value[bool](b, fmt.Sprintf(`new Promise(done => { const end = Date.now() + %d, look = () => {
		if (document.readyState == "complete" && innerWidth == %d || Date.now() > end) requestAnimationFrame(() => requestAnimationFrame(() => done(true)))
		else setTimeout(look, 20) }; look() })`, patience.Milliseconds(), width))
}

// devices are the widths of a phone and of a laptop.
var devices = map[string]int64{"phone": 390, "laptop": 1280}

// schemes are the color schemes, each with what axe is to look for. Dark pages differ from light ones only in colors.
var schemes = map[string]string{"light": "{}", "dark": `{runOnly: ["color-contrast", "link-in-text-block"]}`}

// review looks at the page on a phone and a laptop, light and dark. At each, axe must find no fault, and the page must
// not be wider than the window. If somebody wants to see them, it takes screenshots.
func (b *tab) review(name string) {
	b.t.Helper()
	for device, width := range devices {
		for scheme, rules := range schemes {
			b.look(width, scheme)
			b.photograph(fmt.Sprintf("%s-%s-%s.png", name, device, scheme))
			at := fmt.Sprintf("%s at %s, %s", name, device, scheme)
			if wide := value[int64](b, "document.documentElement.scrollWidth"); wide > width {
				b.t.Errorf("%s: the page is %d pixels wide, the window %d", at, wide, width)
			}
			for _, fault := range b.axe(rules) {
				b.t.Errorf("%s: %s", at, fault)
			}
		}
	}
	b.look(devices["laptop"], "light")
}

// photograph saves a screenshot of the page in $HONE_SCREENSHOTS.
func (b *tab) photograph(name string) {
	b.t.Helper()
	dir := os.Getenv("HONE_SCREENSHOTS")
	if dir == "" {
		return
	}
	shot := chromedp.FullScreenshot(100)
	if value[int](b, "document.documentElement.scrollHeight") > 5000 {
		shot = chromedp.CaptureScreenshot() // nobody looks at a picture that is longer
	}
	picture, err := chromedp.Run(b.ctx, shot)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name), picture, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// axe returns what axe-core, called with some options, finds wrong with the page; nothing if it is not installed.
func (b *tab) axe(options string) []string {
	b.t.Helper()
	program := axe(b.t)
	if program == "" {
		return nil
	}
	if !value[bool](b, "!!window.axe") {
		if err := chromedp.Do(b.ctx, chromedp.Evaluate[chromedp.Void](program)); err != nil {
			b.t.Fatal(err)
		}
	}
	return value[[]string](b, `axe.run(`+options+`).then(found => found.passes.length < (`+options+`.runOnly ? 1 : 10) ? ["axe looks at nothing"] : found.violations.flatMap(v => v.nodes.map(n => v.id + ": " + v.help + "\n" + n.html + "\n" + n.failureSummary)))`)
}

// axe returns axe-core, which make needs installs. It is tested with, and not passed on.
var axe = func() func(*testing.T) string {
	var once sync.Once
	var program string
	return func(t *testing.T) string {
		once.Do(func() {
			cache, err := os.UserCacheDir()
			if err != nil {
				t.Fatal(err)
			}
			found, _ := filepath.Glob(filepath.Join(cache, "hone-browser", "*", "node_modules", "axe-core", "axe.min.js"))
			if len(found) == 0 {
				t.Log("SKIPPED: axe-core is not installed; make needs installs it with npm")
				return
			}
			data, err := os.ReadFile(found[len(found)-1])
			if err != nil {
				t.Fatal(err)
			}
			program = string(data)
		})
		return program
	}
}()
