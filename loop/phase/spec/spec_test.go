package spec_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hone/loop/phase/spec"
)

// seedSpec is the seed's example of a phase, word for word.
const seedSpec = `## Phase 1: Authentication

Users must be able to register and log in securely. Sessions
are JWT-based. Passwords are hashed. Database is PostgreSQL.
Failed attempts must not reveal whether an email exists.

### Contracts
POST /auth/register {email, password} → 201 {user_id}
POST /auth/register {existing email} → 409
POST /auth/login {valid email, valid password} → 200 {token}
POST /auth/login {invalid password} → 401
POST /auth/login {nonexistent email} → 401
GET /dashboard (no token) → redirect /login
GET /dashboard (valid token) → 200

### Flows
FLOW: registration-to-dashboard
  POST /auth/register {email, password} → 201
  POST /auth/login {email, password} → 200 {token}
  GET /dashboard (token) → 200
`

// seedSupersession is the seed's example of a change, in a phase of its own.
const seedSupersession = `## Phase 2: Refresh

### Contracts
SUPERSEDES: POST /auth/login → 200 {token}
POST /auth/login {valid email, valid password} → 200 {token, refresh_token}
`

// specFiles writes files below a new folder and opens it.
func specFiles(t *testing.T, files map[string]string) *os.Root {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// specsOf are phases 1, 2, … with the texts.
func specsOf(texts ...string) []spec.Phase {
	var specs []spec.Phase
	for i, text := range texts {
		specs = append(specs, spec.Parse(i+1, fmt.Sprintf("specs/phase%d.md", i+1), text))
	}
	return specs
}

// outline is what was read of a spec, one line each.
func outline(s spec.Phase) string {
	var b strings.Builder
	contract := func(lead string, c spec.Contract) {
		for _, text := range c.Supersedes {
			fmt.Fprintf(&b, "%sfor %s\n", lead, text)
		}
		fmt.Fprintf(&b, "%s%d %s | %s\n", lead, c.Line, c.Action, c.Expected)
	}
	for _, c := range s.Contracts {
		contract("", c)
	}
	for _, f := range s.Flows {
		for _, text := range f.Supersedes {
			fmt.Fprintf(&b, "for %s\n", text)
		}
		fmt.Fprintf(&b, "%d flow %s\n", f.Line, f.Name)
		for _, c := range f.Steps {
			contract("  ", c)
		}
	}
	return b.String()
}

func warningLines(warnings []spec.Warning) string {
	var b strings.Builder
	for _, w := range warnings {
		b.WriteString(w.String() + "\n")
	}
	return b.String()
}

func TestSeedSpec(t *testing.T) {
	specs := specsOf(seedSpec, seedSupersession)
	want := `8 POST /auth/register {email, password} | 201 {user_id}
9 POST /auth/register {existing email} | 409
10 POST /auth/login {valid email, valid password} | 200 {token}
11 POST /auth/login {invalid password} | 401
12 POST /auth/login {nonexistent email} | 401
13 GET /dashboard (no token) | redirect /login
14 GET /dashboard (valid token) | 200
17 flow registration-to-dashboard
  18 POST /auth/register {email, password} | 201
  19 POST /auth/login {email, password} | 200 {token}
  20 GET /dashboard (token) | 200
`
	if diff := cmp.Diff(want, outline(specs[0])); diff != "" {
		t.Errorf("phase 1 (-want +got):\n%s", diff)
	}
	if got := specs[0].Title; got != "Authentication" {
		t.Errorf("title %q", got)
	}
	if got := specs[0].Flows[0].Steps[2].Flow; got != "registration-to-dashboard" {
		t.Errorf("the step says that it is of flow %q", got)
	}
	if got := warningLines(spec.Check(specs)); got != "" {
		t.Errorf("the seed's own examples are warned of:\n%s", got)
	}
}

// TestSpecShapes: specs that are written in other ways than the seed's.
func TestSpecShapes(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"arrows", "# Contracts\nA → 1\nB -> 2\nC => 3\nD ⇒ 4\nE --> 5\nF→6\n", "2 A | 1\n3 B | 2\n4 C | 3\n5 D | 4\n6 E | 5\n7 F | 6\n"},
		{"no arrow without room", "# Contracts\np->next and x=>y\nA (x->y) -> 1\n", "3 A (x->y) | 1\n"},
		{"arrow in brackets and quotes", "# Contracts\nPOST /x {a → b} → 200\ntype \"a -> b\" -> saved\nA (→ open\n",
			"2 POST /x {a → b} | 200\n3 type \"a -> b\" | saved\n4 A ( | open\n"},
		{"first arrow splits", "# Contracts\nA → B → C\n", "2 A | B → C\n"},
		{"list items", "# Contracts\n- A → 1\n* B → 2\n1. C → 3\n2) D → 4\n- [ ] E → 5\n  - F → 6\n", "2 A | 1\n3 B | 2\n4 C | 3\n5 D | 4\n6 E | 5\n7 F | 6\n"},
		{"emphasis", "# **Contracts**\n- `GET /a` → `200`\n- **GET /b** → 200\n`GET /c → 200`\nGET /**/x → 200 for /**/y\n",
			"2 GET /a | 200\n3 GET /b | 200\n4 GET /c | 200\n5 GET /**/x | 200 for /**/y\n"},
		{"fences", "# Contracts\n```\nA → 1\n# no → heading\n// no → contract\n```\n~~~http\nB → 2\n~~~\n```js\nconst f = x => y\nq => r\n```\nC → 3\n",
			"3 A | 1\n8 B | 2\n14 C | 3\n"},
		{"fence in a fence", "# Contracts\n````\n```\nA → 1\n````\nB → 2\n", "4 A | 1\n6 B | 2\n"},
		{"tables, quotes and comments", "# Contracts\n| A → 1 |\n> B → 2\n<!-- C → 3 -->\n<!-- D → 4\nE → 5\n--> F → 6\nG → 7 <!-- → 8 -->\n", "7 F | 6\n8 G | 7\n"},
		{"over two lines", "# Contracts\nGET /a\n  → 200\nGET /b →\n  200 {id}\nGET /c → 200\n    {id,\n     name}\nD → 4\n",
			"2 GET /a | 200\n4 GET /b | 200 {id}\n6 GET /c | 200 {id, name}\n9 D | 4\n"},
		{"carriage returns", "# Contracts\r\nA → 1\r\n\r\n# Flows\r\nFLOW: f\r\n  B → 2\r\n", "2 A | 1\n5 flow f\n  6 B | 2\n"},
		{"byte order mark", "\ufeff# Contracts\nA → 1\n", "2 A | 1\n"},
		{"underlined headings", "States\n---\n\nContracts\n=========\nA → 1\n\nNotes\n=====\nB → 2\n", "6 A | 1\n"},
		{"prose outside the section", "# Phase 1\nGET /old → 200 is how it was.\n## Context\n- login → dashboard\n## Contracts\nA → 1\n### Login\nB → 2\n## Notes\nC → 3\n",
			"6 A | 1\n8 B | 2\n"},
		{"the title is no section", "# Phase 1: Contracts and flows\nGET /a → 200\n\nThe state goes draft → published.\n", "2 GET /a | 200\n"},
		{"no section: requests", "GET /a → 200\n/b → 404\n$ hone --version → 1.0\nProse with → an arrow\nin a paragraph.\n", "1 GET /a | 200\n2 /b | 404\n3 $ hone --version | 1.0\n"},
		{"no section: prose", "The order goes draft → paid → sent.\n\nStates: draft → paid → sent\n\nIt goes from login → dashboard.\n\n```go\nfunc() -> x\n```\n", ""},
		{"no section: shapes", "- empty name → error\n\nadd(2, 3) → 5\nadd(0, 0) → 0\n\n```\nsub(3, 2) → 1\n```\n", "1 empty name | error\n3 add(2, 3) | 5\n4 add(0, 0) | 0\n7 sub(3, 2) | 1\n"},
		{"supersedes", "# Contracts\nSUPERSEDES: A → 1\nA → 2\n**SUPERSEDES:** B → 1\n- SUPERSEDES (phase 1): C → 1\n\n- B → 2\nSUPERSEDES D → 1\nD → 2\n",
			"for A → 1\n3 A | 2\nfor B → 1\nfor C → 1\n7 B | 2\nfor D → 1\n9 D | 2\n"},
		{"supersedes outside a section", "# Contracts\nA → 1\n# Changes\nSUPERSEDES: B → 1\nB → 2\nC → 3\n", "2 A | 1\nfor B → 1\n5 B | 2\n"},
		{"supersedes a flow", "SUPERSEDES: FLOW: f\nFLOW: f\n  A → 1\n", "for FLOW: f\n2 flow f\n  3 A | 1\n"},
		{"supersedes in a flow", "FLOW: f\n  A → 1\n  SUPERSEDES: B → 1\n  B → 2\nSUPERSEDES: C → 1\nC → 2\n", "for C → 1\n6 C | 2\n1 flow f\n  2 A | 1\n  for B → 1\n  4 B | 2\n"},
		{"flow of list items", "# Flows\n- FLOW: f\n  1. A → 1\n  2. B → 2\n- FLOW: g\n\n  - C → 3\n\n  - D → 4\n- E → 5\n", "10 E | 5\n2 flow f\n  3 A | 1\n  4 B | 2\n5 flow g\n  7 C | 3\n  9 D | 4\n"},
		{"flow as far left as its steps", "FLOW: f\nA → 1\nB → 2\n\nGET /c → 3\n", "5 GET /c | 3\n1 flow f\n  2 A | 1\n  3 B | 2\n"},
		{"flow in a fence", "# Flows\n```\nFLOW: f\n  A → 1\n```\nFLOW: g\n```\nB → 2\n```\n", "3 flow f\n  4 A | 1\n6 flow g\n  8 B | 2\n"},
		{"flow by heading", "# Contracts\nA → 1\n# Flows\nFirst the easy one.\n## Sign up\nSomeone new:\n1. A → 1\n2. B → 2\n\nAnd then:\n3. C → 3\n## Nothing here\n## Flow: other\nD → 4\n",
			"2 A | 1\n5 flow Sign up\n  7 A | 1\n  8 B | 2\n  11 C | 3\n13 flow other\n  14 D | 4\n"},
		{"flow by keyword in a heading", "#### FLOW: f\n\n- A → 1\n\n- B → 2\n", "1 flow f\n  3 A | 1\n  5 B | 2\n"},
		{"flow in prose", "The flow: login → dashboard.\nflow: a word\n", ""},
		{"nothing", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, outline(spec.Parse(1, "specs/phase1.md", test.text))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestSpecTitle(t *testing.T) {
	for text, want := range map[string]string{
		"# Phase 1: Login":                "Login",
		"Intro\n\n## Phase 01 — Login ##": "Login",
		"# phase 1":                       "",
		"# The login":                     "The login",
		"# Phase: one":                    "one",
		"Phase 1. Login\n====":            "Login",
		"# Contracts\n# Login":            "",
		"```\n# no\n```\n# `yes`":         "yes",
		"":                                "",
	} {
		if got := spec.Parse(1, "specs/phase1.md", text).Title; got != want {
			t.Errorf("%q has the title %q, want %q", text, got, want)
		}
	}
}

func TestCheck(t *testing.T) {
	const one = "# Contracts\nA {x} → 1\nA {y} → 1\nB → 2\n# Flows\nFLOW: f\n  C → 3\n"
	for _, test := range []struct {
		name  string
		texts []string
		want  string
	}{
		{"fine", []string{one, "SUPERSEDES: B -> 2\nB → 3\n", "SUPERSEDES: B =>  3\nB → 2\nSUPERSEDES: C → 3\nC → 4\nSUPERSEDES: FLOW: f\nFLOW: f\n  C → 4\n"}, ""},
		{"white space", []string{"GET /x {a, b} → 1\n", "SUPERSEDES: GET  /x { a,b } → 1\nGET /x {a, b} → 2\n"}, ""},
		{"flow without name", []string{"A → 1\nFLOW:\n  A → 1\n"}, "specs/phase1.md:2: FLOW has no name; write FLOW: NAME\n"},
		{"flow without steps", []string{"GET /a → 1\n\nFLOW: f\n\nProse.\n"}, "specs/phase1.md:3: FLOW has no steps; write them below it, one a line, as ACTION → EXPECTED\n"},
		{"flow without steps at the end", []string{"GET /a → 1\n\n#### FLOW: f"}, "specs/phase1.md:3: FLOW has no steps; write them below it, one a line, as ACTION → EXPECTED\n"},
		{"step without an arrow", []string{"FLOW: f\n  A → 1\n  B 2\n  C → 3\n"}, "specs/phase1.md:3: the step has no arrow; write ACTION → EXPECTED\n"},
		{"empty sides", []string{"# Contracts\n→ 1\nB →\nC -> 3"}, "specs/phase1.md:2: the contract has no action left of its arrow\nspecs/phase1.md:3: the contract has no expected result right of its arrow\n"},
		{"supersedes at the end", []string{one + "SUPERSEDES: B → 2\n"}, "specs/phase1.md:8: SUPERSEDES is not followed by the contract that replaces it; a contract is superseded, never removed\n"},
		{"supersedes before prose", []string{one + "SUPERSEDES: B → 2\nIt is gone.\n"}, "specs/phase1.md:8: SUPERSEDES is not followed by the contract that replaces it; a contract is superseded, never removed\n"},
		{"supersedes before a heading", []string{one + "SUPERSEDES: B → 2\n## Next\nB → 3\n"}, "specs/phase1.md:8: SUPERSEDES is not followed by the contract that replaces it; a contract is superseded, never removed\n"},
		{"supersedes without a name", []string{"A → 1\nSUPERSEDES:\nB → 2\n"}, "specs/phase1.md:2: SUPERSEDES names no contract; write SUPERSEDES: ACTION → EXPECTED, and the new contract below it\n"},
		{"supersedes what nobody states", []string{one, "SUPERSEDES: B → 1\nZ → 1\nSUPERSEDES: FLOW: g\nFLOW: f\n  C → 4\nSUPERSEDES: later\nY → 1\nlater → 2\n"},
			"specs/phase2.md:2: it supersedes “B → 1”, which no earlier line states\nspecs/phase2.md:4: it supersedes “FLOW: g”, which no earlier line states\nspecs/phase2.md:7: it supersedes “later”, which no earlier line states\n"},
		{"supersedes what was superseded", []string{one, "SUPERSEDES: B → 2\nB → 3\n", "SUPERSEDES: B → 2\nB → 4\n"},
			"specs/phase3.md:2: it supersedes “B → 2” of specs/phase1.md:4, which specs/phase2.md:2 already superseded\n" +
				"specs/phase3.md:2: specs/phase2.md:2 expects “3” of the same action; to change that, write SUPERSEDES: B → 3 above it\n"},
		{"supersedes more than one", []string{one, "SUPERSEDES: A → 1\nA → 2\n"}, "specs/phase2.md:2: it supersedes “A → 1”, which could be any of specs/phase1.md:2, specs/phase1.md:3; write the one that you mean in full\n"},
		{"supersedes by action", []string{one, "SUPERSEDES: A {y}\nA {y} → 2\n"}, ""},
		{"the same twice", []string{"# Contracts\nA → 1\nA  ->  1\n", "# Contracts\nA → 1\n"}, "specs/phase1.md:3: specs/phase1.md:2 states the same contract\nspecs/phase2.md:2: specs/phase1.md:2 states the same contract\n"},
		{"a flow repeats contracts", []string{"# Contracts\nA → 1\n# Flows\nFLOW: f\n  A → 1\nFLOW: g\n  A → 2\n"}, ""},
		{"changed in a later phase", []string{one, "# Contracts\nB → 9\n"}, "specs/phase2.md:2: specs/phase1.md:4 expects “2” of the same action; to change that, write SUPERSEDES: B → 2 above it\n"},
		{"two results in one phase", []string{"# Contracts\nB → 1\nB → 2\n"}, ""},
		{"no contract", []string{"# Phase 1\nProse alone.\n", "FLOW: f\n  A → 1\n"}, "specs/phase1.md: it states no contract that hone recognizes; write one per line, as ACTION → EXPECTED\n"},
		{"another phase's heading", []string{one, "# Phase 1: Login\n\n## Contracts\nZ → 1\n"}, "specs/phase2.md:1: the heading says phase 1, and the file's name phase 2\n"},
		{"control characters", []string{"# Contracts\nA → 1\nSUPERSEDES: \x1b[2J → 1\nB → 1\n"}, `specs/phase1.md:4: it supersedes “\x1b[2J → 1”, which no earlier line states` + "\n"},
		{"nothing at all", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, warningLines(spec.Check(specsOf(test.texts...)))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCheckGaps(t *testing.T) {
	for _, test := range []struct {
		phases []int
		want   string
	}{
		{[]int{1, 2}, ""},
		{[]int{0, 1}, ""},
		{[]int{2}, "specs/phase2.md: there is no phase 1 before it\n"},
		{[]int{5, 1}, "specs/phase5.md: there are no phases 2 to 4 before it\n"},
	} {
		var specs []spec.Phase
		for _, n := range test.phases {
			specs = append(specs, spec.Parse(n, fmt.Sprintf("specs/phase%d.md", n), fmt.Sprintf("GET /%d → 1", n)))
		}
		if diff := cmp.Diff(test.want, warningLines(spec.Check(specs))); diff != "" {
			t.Errorf("phases %v (-want +got):\n%s", test.phases, diff)
		}
	}
}

func TestRead(t *testing.T) {
	root := specFiles(t, map[string]string{
		"specs/phase1.md":       "\ufeffGET /1 → 200\n",
		"specs/phase2.md":       "GET /2 → 200\n",
		"specs/phase010.md":     "GET /10 → 200\n",
		"specs/README.md":       "not a spec",
		"specs/phase2.md~":      "an editor's copy",
		"specs/phase2.md.orig":  "git's copy",
		"specs/index.md":        "# Phase 1: x",
		"specs/Phase3.md":       "GET /3 → 200\n",
		"specs/phase-2.md":      "GET /2 → 200\n",
		"specs/phase10.txt":     "GET /10 → 200\n",
		"specs/phase2-login.md": "GET /2 → 200\n",
		"specs/phase.md":        "GET /1 → 200\n",
	})
	specs, err := spec.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range specs {
		got = append(got, fmt.Sprintf("%d %s %q %v", s.Number, s.Path, s.Text, s.Strays))
	}
	want := []string{
		`1 specs/phase1.md "GET /1 → 200\n" [specs/phase.md]`,
		`2 specs/phase2.md "GET /2 → 200\n" [specs/Phase3.md specs/phase-2.md specs/phase2-login.md]`,
		`10 specs/phase010.md "GET /10 → 200\n" [specs/phase10.txt]`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := warningLines(spec.Check(specs)); !strings.Contains(got, "specs/phase-2.md: it is ignored; the name of a spec is specs/phaseN.md\n") {
		t.Errorf("a file that is passed over is not warned of:\n%s", got)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"no folder", nil, []string{"no specs", "specs/phase1.md"}},
		{"no spec", map[string]string{"specs/README.md": "x"}, []string{"no specs", "specs/phase1.md"}},
		{"a stray alone", map[string]string{"specs/Phase1.md": "x"}, []string{"specs/Phase1.md is not called phaseN.md"}},
		{"two for one", map[string]string{"specs/phase1.md": "x", "specs/phase01.md": "x"}, []string{"specs/phase01.md and specs/phase1.md are both phase 1"}},
		{"not UTF-8", map[string]string{"specs/phase1.md": "a\nb\xff\n"}, []string{"specs/phase1.md: line 2 is not UTF-8; save"}},
		{"NUL", map[string]string{"specs/phase1.md": "a\x00b"}, []string{"specs/phase1.md: line 1 contains a NUL byte; save"}},
		{"too large", map[string]string{"specs/phase1.md": strings.Repeat("a", 1<<20) + "b"}, []string{"specs/phase1.md: it is larger than 1 MiB; split"}},
		{"a folder", map[string]string{"specs/phase1.md/x": ""}, []string{"specs/phase1.md: it is a directory; make it a regular file"}},
		{"specs is a file", map[string]string{"specs": ""}, []string{"specs is a file; make it a directory"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			specs, err := spec.Read(specFiles(t, test.files))
			if err == nil {
				t.Fatalf("read %d specs", len(specs))
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want it to say %q", err, want)
				}
			}
		})
	}
	specs, err := spec.Read(specFiles(t, map[string]string{"specs/phase1.md": strings.Repeat("a", 1<<20)}))
	if err != nil || len(specs) != 1 {
		t.Errorf("a spec of exactly 1 MiB: %d specs, %v", len(specs), err)
	}
}

func TestReadFollowsNoSymlink(t *testing.T) {
	for link, target := range map[string]string{"specs/phase2.md": "phase1.md", "specs": "real"} {
		root := specFiles(t, map[string]string{"real/phase1.md": "A → 1"})
		if link != "specs" {
			root = specFiles(t, map[string]string{"specs/phase1.md": "A → 1"})
		}
		if err := root.Symlink(target, link); err != nil {
			if runtime.GOOS == "windows" {
				t.Skip("no symlinks here: ", err)
			}
			t.Fatal(err)
		}
		_, err := spec.Read(root)
		if err == nil || !strings.Contains(err.Error(), link) || !strings.Contains(err.Error(), "symlink; make it") {
			t.Errorf("%s as a symlink: %v", link, err)
		}
	}
}

func TestReadKeepsTheCause(t *testing.T) {
	root := specFiles(t, nil)
	root.Close()
	if _, err := spec.Read(root); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("the error is %v, want it to wrap %v", err, fs.ErrClosed)
	}
}

func TestLive(t *testing.T) {
	specs := specsOf(seedSpec, seedSupersession, "GET /late → 200\n")
	var got []string
	for _, c := range spec.Live(specs, 2) {
		got = append(got, fmt.Sprintf("%d:%d %s", c.Phase, c.Line, c))
	}
	want := []string{
		"1:8 POST /auth/register {email, password} → 201 {user_id}",
		"1:9 POST /auth/register {existing email} → 409",
		"1:11 POST /auth/login {invalid password} → 401",
		"1:12 POST /auth/login {nonexistent email} → 401",
		"1:13 GET /dashboard (no token) → redirect /login",
		"1:14 GET /dashboard (valid token) → 200",
		"2:5 POST /auth/login {valid email, valid password} → 200 {token, refresh_token}",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if all := spec.Live(specs, 1); len(all) != 7 {
		t.Errorf("phase 1 has %d live contracts, want all 7: a later phase is not seen", len(all))
	}
}

func TestList(t *testing.T) {
	specs := specsOf(seedSpec, seedSupersession+"GET /x\x1b[31m → 200\n\nFLOW: f\n", "GET /late → 200\n")
	want := `Phase 1: Authentication (specs/phase1.md)
  Contracts
     8  POST /auth/register {email, password}          → 201 {user_id}
     9  POST /auth/register {existing email}           → 409
    10  POST /auth/login {valid email, valid password} → 200 {token}  [superseded by phase 2, specs/phase2.md:5]
    11  POST /auth/login {invalid password}            → 401
    12  POST /auth/login {nonexistent email}           → 401
    13  GET /dashboard (no token)                      → redirect /login
    14  GET /dashboard (valid token)                   → 200
  Flow registration-to-dashboard (line 17)
    18  1.  POST /auth/register {email, password}          → 201
    19  2.  POST /auth/login {email, password}             → 200 {token}
    20  3.  GET /dashboard (token)                         → 200

Phase 2: Refresh (specs/phase2.md)
  Contracts
     5  POST /auth/login {valid email, valid password} → 200 {token, refresh_token}
          supersedes POST /auth/login → 200 {token}
     6  GET /x\x1b[31m                                 → 200
  Flow f (line 8)

Warnings
  specs/phase2.md:8: FLOW has no steps; write them below it, one a line, as ACTION → EXPECTED
`
	if diff := cmp.Diff(want, spec.List(specs, 2)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := spec.List(specs, 0); got != "there is no spec for any phase up to 0\n" {
		t.Errorf("no phase is listed as %q", got)
	}
}

// TestListOfHandMadeSpecs: lines in no order are no reason to stop.
func TestListOfHandMadeSpecs(t *testing.T) {
	got := spec.List([]spec.Phase{{Number: 1, Path: "p", Flows: []spec.Flow{
		{Line: 9, Name: "f", Steps: []spec.Contract{{Line: 2, Action: "A", Expected: "1"}}},
		{Line: 1, Name: "g", Steps: []spec.Contract{{Line: 3, Action: "B", Expected: "2"}}},
	}}}, 1)
	want := "Phase 1 (p)\n  Flow g (line 1)\n     3  1.  B → 2\n  Flow f (line 9)\n     2  1.  A → 1\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// largeSpec is a spec of size bytes, or a line more, whose every line contradicts the others.
func largeSpec(size int) string {
	var b strings.Builder
	b.WriteString("# Contracts\n")
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "A → %d\nSUPERSEDES: Z\n", i)
	}
	return b.String()
}

func TestCheckSaysNoMoreThanSomeoneReads(t *testing.T) {
	got := spec.Check(specsOf(largeSpec(16<<10), "GET /x →\n# Contracts\nB →"))
	if len(got) != 52 {
		t.Fatalf("%d warnings, want 50 of one spec, a line on the others, and one of the next", len(got))
	}
	if text := got[50].String(); !strings.Contains(text, " more warnings from this line on") {
		t.Errorf("the last warning of the spec is %q", text)
	}
	if got[51].Path != "specs/phase2.md" {
		t.Errorf("the next spec's warning is missing: %v", got[51])
	}
}

// BenchmarkCheck is of the largest spec that is read.
func BenchmarkCheck(b *testing.B) {
	text := largeSpec(1<<20 - 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		spec.Check(specsOf(text))
	}
}

// FuzzParse: a parser that only warns never stops a run.
func FuzzParse(f *testing.F) {
	f.Add(seedSpec, seedSupersession)
	f.Add("# Contracts\n<!-- a\n```x\n| b\n```", "SUPERSEDES: FLOW: a\n- FLOW:\n→")
	f.Add("a\n==\n→\n\t→ b", "FLOW: x\n\n  SUPERSEDES\n ->")
	f.Fuzz(func(t *testing.T, first, second string) {
		specs := specsOf(first, second)
		for _, s := range specs {
			lines := strings.Count(s.Text, "\n") + 1
			all := s.Contracts
			for _, flow := range s.Flows {
				all = append(all, flow.Steps...)
				all = append(all, spec.Contract{Line: flow.Line, Action: flow.Name})
			}
			for _, c := range all {
				if c.Line < 1 || c.Line > lines {
					t.Errorf("%q stands in line %d of %d", c, c.Line, lines)
				}
				if strings.ContainsAny(c.Action+c.Expected, "\n\r") {
					t.Errorf("%q has more than one line", c)
				}
			}
		}
		for _, w := range spec.Check(specs) {
			if strings.ContainsAny(w.String(), "\n\x1b\x00") {
				t.Errorf("the warning %q is not safe to print", w)
			}
		}
		if list := spec.List(specs, 2); strings.ContainsAny(list, "\x1b\x00\r") {
			t.Errorf("the list is not safe to print: %q", list)
		}
	})
}
