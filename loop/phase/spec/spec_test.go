package spec_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

// specFiles writes files below a new directory.
func specFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// specsOf are phases 1, 2, … with the texts, resolved.
func specsOf(texts ...string) []spec.Phase {
	var specs []spec.Phase
	for i, text := range texts {
		specs = append(specs, spec.Parse(i+1, fmt.Sprintf("specs/phase%d.md", i+1), text))
	}
	spec.Resolve(specs)
	return specs
}

// outline is what was read of a spec, one line each.
func outline(s spec.Phase) string {
	var b strings.Builder
	for _, i := range s.Items {
		for _, text := range i.Supersedes {
			fmt.Fprintf(&b, "for %s\n", text)
		}
		lead := ""
		if i.Flow != "" {
			fmt.Fprintf(&b, "%d flow %s\n", i.Line, i.Flow)
			lead = "  "
		}
		for _, c := range i.Steps {
			fmt.Fprintf(&b, "%s%d %s | %s\n", lead, c.Line, c.Action, c.Expected)
		}
	}
	return b.String()
}

func warningLines(specs []spec.Phase) string {
	var b strings.Builder
	for _, s := range specs {
		for _, w := range s.Warnings {
			b.WriteString(w + "\n")
		}
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
	if got := warningLines(specs); got != "" {
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
		{"ABL's later form", "## Contracts\n\n### POST /users\n**Input:** `{\"name\": \"A\"}`\n**Success:** `201 {\"id\"}`\n**Fail (Taken):** `409 {\"error\"}`\n\n### VERIFICATION: Audit\n" +
			"**Action:** After `POST /users`\n**Query:** `SELECT 1`\n**Expected:** `1`\n\n## Notes\nSuccess: unlikely\n",
			"5 POST /users {\"name\": \"A\"} | 201 {\"id\"}\n6 POST /users (Taken) | 409 {\"error\"}\n11 VERIFICATION: Audit After POST /users SELECT 1 | 1\n"},
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
		{"prose outside the section", "# Phase 1\nGET /old → 200 is how it was.\n## Context\n- login → dashboard\n## Contracts\nA → 1\n### Login\nB → 2\n## Notes\nC → 3\n",
			"6 A | 1\n8 B | 2\n"},
		{"the title is no section", "# Phase 1: Contracts and flows\nGET /a → 200\n\nThe state goes draft → published.\n", "2 GET /a | 200\n"},
		{"no section: requests", "GET /a → 200\n/b → 404\n$ hone --version → 1.0\nProse with → an arrow\nin a paragraph.\n", "1 GET /a | 200\n2 /b | 404\n3 $ hone --version | 1.0\n"},
		{"no section: prose", "The order goes draft → paid → sent.\n\nStates: draft → paid → sent\n\nIt goes from login → dashboard.\n\n```go\nfunc() -> x\n```\n", ""},
		{"no section: shapes", "- empty name → error\n\nadd(2, 3) → 5\nadd(0, 0) → 0\n\n```\nsub(3, 2) → 1\n```\n", "1 empty name | error\n7 sub(3, 2) | 1\n"},
		{"supersedes", "# Contracts\nSUPERSEDES: A → 1\nA → 2\n**SUPERSEDES:** B → 1\n- SUPERSEDES (phase 1): C → 1\n\n- B → 2\nSUPERSEDES D → 1\nD → 2\n",
			"for A → 1\n3 A | 2\nfor B → 1\nfor C → 1\n7 B | 2\nfor D → 1\n9 D | 2\n"},
		{"supersedes outside a section", "# Contracts\nA → 1\n# Changes\nSUPERSEDES: B → 1\nB → 2\nC → 3\n", "2 A | 1\nfor B → 1\n5 B | 2\n"},
		{"supersedes a flow", "SUPERSEDES: FLOW: f\nFLOW: f\n  A → 1\n", "for FLOW: f\n2 flow f\n  3 A | 1\n"},
		{"supersedes in a flow", "FLOW: f\n  A → 1\n  SUPERSEDES: B → 1\n  B → 2\nSUPERSEDES: C → 1\nC → 2\n", "for B → 1\n1 flow f\n  2 A | 1\n  4 B | 2\nfor C → 1\n6 C | 2\n"},
		{"flow of list items", "# Flows\n- FLOW: f\n  1. A → 1\n  2. B → 2\n- FLOW: g\n\n  - C → 3\n\n  - D → 4\n- E → 5\n", "2 flow f\n  3 A | 1\n  4 B | 2\n5 flow g\n  7 C | 3\n  9 D | 4\n10 E | 5\n"},
		{"flow as far left as its steps", "FLOW: f\nA → 1\nB → 2\n\nGET /c → 3\n", "1 flow f\n  2 A | 1\n  3 B | 2\n5 GET /c | 3\n"},
		{"flow in a fence", "# Flows\n```\nFLOW: f\n  A → 1\n```\nFLOW: g\n```\nB → 2\n```\n", "3 flow f\n  4 A | 1\n6 flow g\n  8 B | 2\n"},
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

func TestWarnings(t *testing.T) {
	const one = "# Contracts\nA {x} → 1\nA {y} → 1\nB → 2\n# Flows\nFLOW: f\n  C → 3\n"
	for _, test := range []struct {
		name  string
		texts []string
		want  string
	}{
		{"fine", []string{one, "SUPERSEDES: B -> 2\nB → 3\n", "SUPERSEDES: B =>  3\nB → 2\nSUPERSEDES: C → 3\nC → 4\nSUPERSEDES: FLOW: f\nFLOW: f\n  C → 4\n"}, ""},
		{"white space", []string{"GET /x {a, b} → 1\n", "SUPERSEDES: GET  /x { a,b } → 1\nGET /x {a, b} → 2\n"}, ""},
		{"flow without name", []string{"A → 1\nFLOW:\n  A → 1\n"}, "specs/phase1.md:2: the flow lacks a name or steps; write FLOW: NAME, and below it one step a line, as ACTION → EXPECTED\n"},
		{"flow without steps", []string{"GET /a → 1\n\nFLOW: f\n\nProse.\n"}, "specs/phase1.md:3: the flow lacks a name or steps; write FLOW: NAME, and below it one step a line, as ACTION → EXPECTED\n"},
		{"flow without steps at the end", []string{"GET /a → 1\n\n#### FLOW: f"}, "specs/phase1.md:3: the flow lacks a name or steps; write FLOW: NAME, and below it one step a line, as ACTION → EXPECTED\n"},
		{"step without an arrow", []string{"FLOW: f\n  A → 1\n  B 2\n  C → 3\n"}, "specs/phase1.md:3: the step has no arrow; write ACTION → EXPECTED\n"},
		{"empty sides", []string{"# Contracts\n→ 1\nB →\nC -> 3"}, "specs/phase1.md:2: the contract lacks one side of its arrow; write ACTION → EXPECTED\nspecs/phase1.md:3: the contract lacks one side of its arrow; write ACTION → EXPECTED\n"},
		{"supersedes at the end", []string{one + "SUPERSEDES: B → 2\n"}, "specs/phase1.md:8: SUPERSEDES is not followed by the contract that replaces it; a contract is superseded, never removed\n"},
		{"supersedes before prose", []string{one + "SUPERSEDES: B → 2\nIt is gone.\n"}, "specs/phase1.md:8: SUPERSEDES is not followed by the contract that replaces it; a contract is superseded, never removed\n"},
		{"supersedes before a heading", []string{one + "SUPERSEDES: B → 2\n## Next\nB → 3\n"}, "specs/phase1.md:8: SUPERSEDES is not followed by the contract that replaces it; a contract is superseded, never removed\n"},
		{"supersedes without a name", []string{"GET /a → 1\nSUPERSEDES:\nB → 2\n"}, "specs/phase1.md:2: SUPERSEDES names no contract; write SUPERSEDES: ACTION → EXPECTED, and the new contract below it\n"},
		{"supersedes what nobody states", []string{one, "SUPERSEDES: B → 1\nZ → 1\nSUPERSEDES: FLOW: g\nFLOW: f\n  C → 4\nSUPERSEDES: later\nY → 1\nlater → 2\n"},
			"specs/phase2.md:2: it supersedes “B → 1”, which no earlier line states\nspecs/phase2.md:4: it supersedes “FLOW: g”, which no earlier line states\nspecs/phase2.md:7: it supersedes “later”, which no earlier line states\n"},
		{"supersedes more than one", []string{one, "SUPERSEDES: A → 1\nA → 2\n"}, "specs/phase2.md:2: it supersedes “A → 1”, which could be any of specs/phase1.md:2, specs/phase1.md:3; write the one that you mean in full\n"},
		{"supersedes by action", []string{one, "SUPERSEDES: A {y}\nA {y} → 2\n"}, ""},
		{"the same twice", []string{"# Contracts\nA → 1\nA  ->  1\n", "# Contracts\nA → 1\n"}, ""},
		{"a flow repeats contracts", []string{"# Contracts\nA → 1\n# Flows\nFLOW: f\n  A → 1\nFLOW: g\n  A → 2\n"}, ""},
		{"two results in one phase", []string{"# Contracts\nB → 1\nB → 2\n"}, ""},
		{"control characters", []string{"# Contracts\nA → 1\nSUPERSEDES: \x1b[2J → 1\nB → 1\n"}, `specs/phase1.md:4: it supersedes “\x1b[2J → 1”, which no earlier line states` + "\n"},
		{"nothing at all", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, warningLines(specsOf(test.texts...))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRead(t *testing.T) {
	dir := specFiles(t, map[string]string{
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
	specs, err := spec.Read(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range specs {
		got = append(got, fmt.Sprintf("%d %s %q", s.Number, s.Path, s.Text))
	}
	want := []string{
		`1 specs/phase1.md "GET /1 → 200\n"`,
		`2 specs/phase2.md "GET /2 → 200\n"`,
		`10 specs/phase010.md "GET /10 → 200\n"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"no directory", map[string]string{"x": ""}, []string{"no specs", "specs/phase1.md"}},
		{"no spec", map[string]string{"specs/README.md": "x"}, []string{"no specs", "specs/phase1.md"}},
		{"another name", map[string]string{"specs/Phase1.md": "x"}, []string{"there is no specs/phaseN.md"}},
		{"two for one", map[string]string{"specs/phase1.md": "x", "specs/phase01.md": "x"}, []string{"specs/phase01.md and specs/phase1.md are both phase 1"}},
		{"not UTF-8", map[string]string{"specs/phase1.md": "a\nb\xff\n"}, []string{"specs/phase1.md is not UTF-8 text; save"}},
		{"NUL", map[string]string{"specs/phase1.md": "a\x00b"}, []string{"specs/phase1.md is not UTF-8 text; save"}},
		{"too large", map[string]string{"specs/phase1.md": strings.Repeat("a", 1<<20) + "b"}, []string{"specs/phase1.md is longer than 1048576 bytes"}},
		{"a directory", map[string]string{"specs/phase1.md/x": ""}, []string{"specs/phase1.md is not a regular file"}},
		{"specs is a file", map[string]string{"specs": ""}, []string{"specs is not a directory"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			specs, err := spec.Read(specFiles(t, test.files), 0)
			if wrong := (*spec.Error)(nil); !errors.As(err, &wrong) || wrong.Missing {
				t.Fatalf("read %d specs, %v", len(specs), err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error is %q, want it to say %q", err, want)
				}
			}
		})
	}
	if specs, err := spec.Read(specFiles(t, map[string]string{"specs/phase1.md": strings.Repeat("a", 1<<20)}), 0); err != nil || len(specs) != 1 {
		t.Errorf("a spec of exactly 1 MiB: %d specs, %v", len(specs), err)
	}
}

func TestReadFollowsNoSymlink(t *testing.T) {
	for link, target := range map[string]string{"specs/phase2.md": "phase1.md", "specs": "real"} {
		dir := specFiles(t, map[string]string{"real/phase1.md": "A → 1"})
		if link != "specs" {
			dir = specFiles(t, map[string]string{"specs/phase1.md": "A → 1"})
		}
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Skip("no symlinks here: ", err)
		}
		if _, err := spec.Read(dir, 0); err == nil || !strings.Contains(err.Error(), link) {
			t.Errorf("%s as a symlink: %v", link, err)
		}
	}
}

// TestDue: what needs a test in a phase, which a later phase does not change.
func TestDue(t *testing.T) {
	dir := specFiles(t, map[string]string{
		"specs/phase1.md": seedSpec,
		"specs/phase2.md": seedSupersession + "GET /dashboard (valid  token) -> 200\n",
		"specs/phase3.md": "SUPERSEDES: FLOW: registration-to-dashboard\nGET /late → 200\n",
	})
	due := func(phase int) []spec.Item {
		specs, err := spec.Read(dir, phase)
		if err != nil {
			t.Fatal(err)
		}
		return spec.DueItems(specs)
	}
	var got []string
	for _, i := range due(2) {
		got = append(got, fmt.Sprintf("%s:%d %s", i.Path, i.Line, i))
	}
	want := []string{
		"specs/phase1.md:8 POST /auth/register {email, password} → 201 {user_id}",
		"specs/phase1.md:9 POST /auth/register {existing email} → 409",
		"specs/phase1.md:11 POST /auth/login {invalid password} → 401",
		"specs/phase1.md:12 POST /auth/login {nonexistent email} → 401",
		"specs/phase1.md:13 GET /dashboard (no token) → redirect /login",
		"specs/phase1.md:14 GET /dashboard (valid token) → 200",
		"specs/phase1.md:17 FLOW: registration-to-dashboard",
		"specs/phase2.md:5 POST /auth/login {valid email, valid password} → 200 {token, refresh_token}",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for phase, want := range map[int]int{1: 8, 2: 8, 3: 8} {
		if got := len(due(phase)); got != want {
			t.Errorf("%d are due in phase %d, want %d", got, phase, want)
		}
	}
}

func TestList(t *testing.T) {
	want := `Phase 1 (specs/phase1.md)
     8  POST /auth/register {email, password} → 201 {user_id}
     9  POST /auth/register {existing email} → 409
    10  POST /auth/login {valid email, valid password} → 200 {token}  [superseded by specs/phase2.md:5]
    11  POST /auth/login {invalid password} → 401
    12  POST /auth/login {nonexistent email} → 401
    13  GET /dashboard (no token) → redirect /login
    14  GET /dashboard (valid token) → 200
    17  FLOW: registration-to-dashboard
    18    POST /auth/register {email, password} → 201
    19    POST /auth/login {email, password} → 200 {token}  [superseded by specs/phase2.md:5]
    20    GET /dashboard (token) → 200

Phase 2 (specs/phase2.md)
     5  POST /auth/login {valid email, valid password} → 200 {token, refresh_token}
     6  GET /x\x1b[31m → 200

Warnings
  specs/phase2.md:8: the flow lacks a name or steps; write FLOW: NAME, and below it one step a line, as ACTION → EXPECTED
`
	specs := specsOf(seedSpec, seedSupersession+"GET /x\x1b[31m → 200\n\nFLOW: f\n")
	if diff := cmp.Diff(want, spec.List(specs)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// FuzzParse: a parser that only warns never stops a run.
func FuzzParse(f *testing.F) {
	f.Add(seedSpec, seedSupersession)
	f.Add("# Contracts\n<!-- a\n```x\n| b\n```", "SUPERSEDES: FLOW: a\n- FLOW:\n→")
	f.Add("# a\n\n→\n\t→ b", "FLOW: x\n\n  SUPERSEDES\n ->")
	f.Fuzz(func(t *testing.T, first, second string) {
		specs := specsOf(first, second)
		for _, s := range specs {
			lines := strings.Count(s.Text, "\n") + 1
			for _, i := range s.Items {
				for _, c := range i.Steps {
					if c.Line < 1 || c.Line > lines || i.Line < 1 || i.Line > lines {
						t.Errorf("%q is in line %d of %d", c, c.Line, lines)
					}
					if strings.ContainsAny(c.Action+c.Expected, "\n\r") {
						t.Errorf("%q has more than one line", c)
					}
				}
			}
		}
		if warnings := warningLines(specs); strings.ContainsAny(warnings, "\x1b\x00\r") {
			t.Errorf("the warnings are not safe to print: %q", warnings)
		}
		if list := spec.List(specs); strings.ContainsAny(list, "\x1b\x00\r") {
			t.Errorf("the list is not safe to print: %q", list)
		}
		spec.DueItems(specs)
	})
}
