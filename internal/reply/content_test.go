package reply

import (
	"strings"
	"testing"
)

const calc = `"""Arithmetic."""

def add(a, b):
    return a // b

def sub(a, b):
    return a - b

def mul(a, b):
    return a * b
`

// code returns contents with a line in place of the functions after add.
func code(line string) string {
	return strings.Replace(calc[:strings.Index(calc, "def sub")], "//", "+", 1) + line + "\n"
}

func TestOmissions(t *testing.T) {
	for _, line := range []string{
		"# ... rest of the file unchanged ...", "# ... (rest of the code remains the same)", "# ... existing code ...", "# rest of the file unchanged",
		"// ... existing code ...", "// ...existing code...", "/* ... rest of the methods ... */", "{/* ... existing JSX ... */}", "<!-- ... rest of the page ... -->",
		"-- ... remaining columns ...", ";; ... other functions unchanged ...", "% ... rest of code", "(* ... unchanged ... *)", "{- ... rest unchanged -}",
		"! ... remaining code ...", `" ... existing settings ...`, "' ... existing code ...", "REM ... rest of the script ...", "{{!-- ... rest ... --}}",
		"<%# ... rest of template ... %>", "... rest unchanged ...", "[... remaining functions unchanged ...]", "(… unchanged …)", "# … rest of file …", "# [rest of the code unchanged]",
		"    # ... sub and mul unchanged ...", "# ... other methods remain unchanged", "// Rest of your code remains the same", "# keep existing code", "# existing code here",
		"// code omitted for brevity", "# ... same as before ...", "# ... omitted for brevity ...", "/// ... existing code ...", "# ...", "...", "# unchanged", "# (unchanged)",
		"def sub(a, b): ...", "class Rest: ...", "# The rest of the functions", "// ... [existing imports] ...", "# <<< ... existing ... >>>", "dnl ... rest ...", "@* ... existing markup ... *@",
	} {
		if err := CheckContent("calc.py", []byte(calc), []byte(code(line))); err == nil || !strings.Contains(err.Error(), "stands for omitted code") {
			t.Errorf("%q: %v", line, err)
		}
		if err := CheckContent("calc.py", []byte(code(line)+"x = 1\n"), []byte(code(line))); err != nil {
			t.Errorf("%q was there before: %v", line, err)
		}
	}
	const text = "    return a + b\n    # ... rest unchanged ..."
	changed := strings.Replace(calc, "    return a // b", text, 1)
	if err := CheckEdit("calc.py", []byte(calc), []byte(changed), []string{text}); err == nil || !strings.Contains(err.Error(), "newText") {
		t.Errorf("in an edit: %v", err)
	}
}

func TestNoOmissions(t *testing.T) {
	for name, c := range map[string]struct{ name, old, text string }{
		"a Python body":             {"a.py", "", "class A:\n    ...\n\ndef f(): ...\n\n@overload\ndef g(x: int) -> int: ...\n"},
		"a body in place of pass":   {"a.py", "class A:\n    pass\n\nx = 1\n", "class A:\n    ...\n\nx = 1\n"},
		"an overload":               {"a.py", "def f(x):\n    return x\n", "@overload\ndef f(x: int) -> int: ...\ndef f(x):\n    return x\n"},
		"a stub":                    {"a.pyi", "def f(x): pass\ndef g(x): pass\n", "def f(x): ...\n# ...\n"},
		"a doctest":                 {"a.py", "", "def f():\n    \"\"\"\n    >>> f()\n    ...\n    \"\"\"\n"},
		"spread":                    {"a.js", "", "const a = {\n  ...rest,\n  ...existing,\n  ...other\n};\nf(...remaining);\n"},
		"a variadic function":       {"a.go", "", "func f(rest ...string) { g(rest...) }\n"},
		"an empty comment":          {"a.js", "", "function f() {\n  // ...\n}\n"},
		"a menu":                    {"a.go", "", "menu(\"Open existing file...\")\nlog(\"Loading the rest...\")\n"},
		"a sentence":                {"a.go", "", "// The rest of the code assumes that x is set.\n// ...and the existing file is kept if it is newer.\n"},
		"a comment about order":     {"a.go", "", "// remaining files are removed below\n// existing entries stay where they are in the list\n"},
		"prose":                     {"a.md", "", "Wait… the rest is unchanged …\n\n```js\n// ... existing code ...\n```\n"},
		"an example in a comment":   {"a.go", "", "//\tf()\n//\t... rest of the program ...\n"},
		"a test about ellipsis":     {"a_test.go", "", "var s = `\n# ... rest of the file unchanged ...\n`\n"},
		"a prompt about ellipsis":   {"p.py", "", "PROMPT = \"\"\"\n# ... existing code ...\n\"\"\"\n"},
		"a string":                  {"a.py", "", "bad = [\n    \"# ... existing code ...\",\n]\n"},
		"test data":                 {"testdata/x.py", "", "# ... existing code ...\n"},
		"a new comment, none lost":  {"a.py", "x = 1\ny = 2\n", "x = 1\n# ...\ny = 2\n"},
		"deleted lines, no comment": {"a.py", "x = 1\ny = 2\nz = 3\n", "x = 1\n"},
		"YAML's end":                {"a.yaml", "", "---\na: 1\n...\n"},
		"a fence in a document":     {"a.md", "", "```sh\nmake\n```\n"},
		"a patch":                   {"fix.patch", "", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"},
		"numbered data":             {"a.tsv", "", "1\ta\n2\tb\n"},
		"a YAML map of numbers":     {"a.yml", "", "1: a\n2: b\n"},
		"entities":                  {"a.html", "", "<p>a &lt; b</p>\n"},
		"an escaper":                {"a.py", "", "s = s.replace('<', '&lt;').replace('>', '&gt;')\n"},
		"minified":                  {"a.js", "", `f("a\nb\nc")`},
		"SEARCH in a string":        {"a.py", "", "s = '''\n<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n'''\n"},
	} {
		var old []byte
		if c.old != "" {
			old = []byte(c.old)
		}
		if err := CheckContent(c.name, old, []byte(c.text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestForms(t *testing.T) {
	for want, texts := range map[string][]string{
		"opens a Markdown fence": {"```python\n{new}```\n", "```\n{new}```", "\n~~~\n{new}~~~\n"},
		"it is a diff":           {"--- a/calc.py\n+++ b/calc.py\n@@ -3,2 +3,2 @@\n-x\n+y\n", "diff --git a/calc.py b/calc.py\n@@ -1 +1 @@\n", "*** Begin Patch\n*** Update File: calc.py\n@@\n-x\n+y\n*** End Patch\n", "@@ -1,2 +1,2 @@\n-x\n+y\n"},
		"SEARCH/REPLACE":         {"<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n", "------- SEARCH\nx\n=======\ny\n+++++++ REPLACE\n"},
		"begins with a number":   {"0001: a\n0002: b\n0003:\n0004: c\n", "1: a\n2: b\n", "     1\ta\n     2\tb\n", "1 | a\n2 |\n3 | b\n", "  1→a\n  2→b\n", "0007: a\n"},
		"in place of line break": {`def add(a, b):\n    return a + b\n`},
		"HTML entities":          {"if a &lt; b:\n    pass\n", "\"\"\"Arithmetic.\"\"\"\nf = lambda a: a &amp;&amp; b\n"},
		"a part of the file":     {"def mul(a, b):\n    return b * a\n", "    return a + b\n"},
	} {
		for _, text := range texts {
			text = strings.ReplaceAll(text, "{new}", calc)
			if err := CheckContent("calc.py", []byte(calc), []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", text, err, want)
			}
		}
	}
	for old, text := range map[string]string{
		"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n": "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-y\n",
		"<<<<<<< SEARCH\n>>>>>>> REPLACE\n":   "<<<<<<< SEARCH\nx\n>>>>>>> REPLACE\n",
		"```\na\n```\n":                       "```\nb\n```\n",
		"1: a\n2: b\n":                        "1: b\n2: c\n",
	} {
		if err := CheckContent("odd.py", []byte(old), []byte(text)); err != nil {
			t.Errorf("%q was so before: %v", text, err)
		}
	}
}

func TestStyle(t *testing.T) {
	for _, c := range []struct{ old, content, want string }{
		{"a\r\nb\r\n", "a\nc\n", "a\r\nc\r\n"},
		{"a\r\nb\r\n", "a\r\nc", "a\r\nc\r\n"},
		{"a\nb\n", "a\r\nc\r\n", "a\nc\n"},
		{"a\nb\n", "a\nc", "a\nc\n"},
		{"a\nb", "a\nc\n", "a\nc\n"},
		{"a\nb\n", "a\nc\r", "a\nc\n"},
		{"a\r\nb\n", "a\nc\r\n", "a\nc\r\n"},
		{"\ufeffa\n", "b\n", "\ufeffb\n"},
		{"", "a\r\n", "a\r\n"},
		{"a\r\r\n", "a\r\r\n", "a\r\r\n"},
		{"a\n", "", ""},
		{"a\r\nb\nc\r\n", "a\nb\nx\nc\ny\n", "a\r\nb\nx\nc\r\ny\r\n"},
		{"a\r\nb\n", "new\na\nb\n", "new\na\r\nb\n"},
		{"a\r\n\nb\r\n\r\n", "\na\n\nb", "\na\r\n\r\nb"},
	} {
		got := StyleOf([]byte(c.old)).Apply([]byte(c.content))
		if string(got) != c.want {
			t.Errorf("%q after %q: %q, want %q", c.content, c.old, got, c.want)
		}
		if again := StyleOf([]byte(c.old)).Apply(got); string(again) != c.want {
			t.Errorf("applied twice: %q", again)
		}
	}
}
