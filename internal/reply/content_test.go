package reply

import (
	"regexp"
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
		"def sub(a, b): ...", "class Rest: ...", "# sub and mul unchanged", "# sub, mul and its helpers omitted", "# The rest of the functions", "// ... [existing imports] ...", "# <<< ... existing ... >>>", "dnl ... rest ...", "@* ... existing markup ... *@",
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

// TestStubs checks that a body which the old file has is never replaced by words, and that
// the same words may stand where nothing is lost.
func TestStubs(t *testing.T) {
	for ext, bodies := range map[string][]string{
		".py": {"def sub(a, b): ...  # unchanged", "def sub(a, b): ... # same", "def sub(a, b): pass  # unchanged", "def sub(a, b):\n    pass  # unchanged", "def sub(a, b):  # unchanged\n    ...",
			"def sub(a, b):\n    ...  # as before", "def sub(a, b):\n    # same as before", "def sub(a, b):\n    # todo: same", "def sub(a, b):\n    # TODO: same as original\n    pass",
			"def sub(a, b):\n    # body omitted", "def sub(a, b):\n    # (implementation unchanged)", "def sub(a, b):\n    # original code here", "def sub(a, b):\n    # no changes",
			"def sub(a, b):\n    # not changed", "def sub(a, b):\n    # as is", "def sub(a, b):\n    raise NotImplementedError  # unchanged", "def sub(a, b):\n    raise NotImplementedError(\"same as before\")",
			"def sub(a: int, b: int) -> int: ...  # unchanged", "def sub(a: int, b: int) -> int: ...", "def sub(a, b):\n    return  # same as before", "def sub(a, b):\n    # ... existing",
			"def sub(a, b): # the rest of the code", "def sub(a, b):\n    # keep as is", "def sub(a, b): #unmodified", "def sub(a, b): ...  # noqa", "def sub(a, b):\n    ...  # as in the file", "def sub(a, b):\n    \"\"\"Unchanged.\"\"\"", "def sub(a, b):\n    '''same as before'''", "def sub(a, b):\n    # previous implementation"},
		".js": {"function sub(a, b) { /* unchanged */ }", "function sub(a, b) { ... }", "function sub(a, b) {\n  /* unchanged */\n}", "function sub(a, b) { // unchanged\n}", "function sub(a, b) {\n  // ... existing\n}",
			"function sub(a, b) { /* same as before */ };", "function sub(a, b) {\n  // same\n}", "function sub(a, b) {\n  throw new Error('unchanged');\n}", "function sub(a, b) { /* … */ }",
			"function sub(a, b) {\n  // TODO: same as before\n}", "function sub(a, b) {\n  // see above, unchanged\n}"},
		".ts": {"const sub = (a, b) => { /* unchanged */ };", "const sub = (a, b) => {\n  // same as above\n};"},
		".go": {"func sub(a, b int) int { /* unchanged */ }", "func sub(a, b int) int { ... }", "func sub(a, b int) int {\n\tpanic(\"unchanged\")\n}", "func sub(a, b int) int {\n\t// existing code\n}"},
		".rs": {"fn sub(a: i32, b: i32) -> i32 { /* omitted */ }", "fn sub(a: i32, b: i32) -> i32 { unimplemented!(\"unchanged\") }", "fn sub(a: i32, b: i32) -> i32 { todo!(\"same as before\") }", "fn sub(a: i32, b: i32) -> i32 {\n    todo!() // unchanged\n}"},
		".rb": {"def sub(a, b) # unchanged\nend", "def sub(a, b)\n  # same as before\nend", "def sub(a, b)\n  # omitted\nend"},
		".el": {"(defun sub (a b) ...)", "(defun sub (a b)\n  ;; unchanged\n  )"},
	} {
		old := map[string]string{
			".py": calc, ".js": "function add(a, b) {\n  return a - b;\n}\nfunction sub(a, b) {\n  return a - b - 0;\n}\nfunction mul(a, b) {\n  return a * b;\n}\n",
			".go": "func add(a, b int) int {\n\treturn a - b\n}\nfunc sub(a, b int) int {\n\treturn a - b - 0\n}\nfunc mul(a, b int) int {\n\treturn a * b\n}\n",
			".ts": "const add = (a, b) => {\n  return a - b;\n};\nconst sub = (a, b) => {\n  return a - b - 0;\n};\nconst mul = (a, b) => {\n  return a * b;\n};\n",
			".rs": "fn add(a: i32, b: i32) -> i32 {\n    a - b\n}\nfn sub(a: i32, b: i32) -> i32 {\n    a - b - 0\n}\nfn mul(a: i32, b: i32) -> i32 {\n    a * b\n}\n",
			".rb": "def add(a, b)\n  a - b\nend\ndef sub(a, b)\n  a - b - 0\nend\ndef mul(a, b)\n  a * b\nend\n",
			".el": "(defun add (a b)\n  (- a b))\n(defun sub (a b)\n  (- a b 0))\n(defun mul (a b)\n  (* a b))\n",
		}[ext]
		parts := regexp.MustCompile(`(?ms)^(\(?\w+ (?:add).*)(^\(?\w+ sub.*)(^\(?\w+ mul.*)`).FindStringSubmatch(old)
		for _, body := range bodies {
			for _, extra := range []string{"", "x = 1\ny = 2\nz = 3\n"} {
				text := parts[1] + extra + body + "\n" + parts[3]
				if err := CheckContent("a"+ext, []byte(old), []byte(text)); err == nil || !strings.Contains(err.Error(), "stands for omitted code") {
					t.Errorf("%s: %q after %q: %v", ext, body, extra, err)
				}
			}
			if err := CheckContent("a"+ext, []byte(parts[1]+body+"\n"), []byte(parts[1]+"\n"+body+"\n"+parts[3])); err != nil {
				t.Errorf("%s: %q was there before: %v", ext, body, err)
			}
		}
	}
}

// TestReplaced checks that a line in place of a large part of a file is refused whatever it says,
// and that lines may be removed: without a line in their place, or with new code.
func TestReplaced(t *testing.T) {
	for _, line := range []string{
		"# [snip 8 lines]", "# (all other functions as they were)", "# sub and mul stay the same", "# ... Rest unverändert ...", "# 其余代码保持不变", "# ... resto del código sin cambios ...",
		"# ... (sub, mul)", "// die anderen Funktionen wie gehabt", "-- остальное без изменений", "<!-- weiter wie bisher -->", "[snip 8 lines]", "<sub and mul>", "... weiter wie bisher",
		"# TODO: the two others", "# sub\n# and mul as they were", "",
	} {
		text := code(line)
		err := CheckContent("calc.py", []byte(calc), []byte(text))
		if (err == nil) != (line == "") {
			t.Errorf("%q: %v", line, err)
		}
		if err := CheckContent("calc.py", []byte(text+"x = 1\n"), []byte(text)); err != nil {
			t.Errorf("%q was there before: %v", line, err)
		}
		if err := CheckContent("calc.py", []byte(calc), []byte(line+"\n"+calc)); err != nil && !strings.Contains(line, "...") {
			t.Errorf("%q, and nothing is lost: %v", line, err)
		}
	}
	long := strings.Repeat("x = f(\n    1)\ny = 2\n", 10)
	inside := "def f(a):\n" + strings.Repeat("    a = g(a, %)\n", 8) + "    return a\n"
	for i := range 8 {
		inside = strings.Replace(inside, "%", string(rune('0'+i)), 1)
	}
	for name, c := range map[string]struct{ name, old, text, want string }{
		"a placeholder for all":       {"a.py", long, "<file contents here>\n", "it is only"},
		"an answer":                   {"a.py", long, "\nNo changes needed.\n", "it is only"},
		"a word":                      {"a.md", long, "TODO\n", "it is only"},
		"in a function":               {"a.py", inside, "def f(a):\n    # (wie bisher)\n    return a\n", "stands where 8 lines"},
		"a module that moved":         {"a.py", long, "from b import *\n", ""},
		"an import":                   {"a.py", long, "import b\n", ""},
		"a command":                   {"a.sh", long, "exit 0\n", ""},
		"an empty object":             {"a.json", long, "{}\n", ""},
		"a line of it":                {"a.py", long, "y = 2\n", ""},
		"minified":                    {"a.js", long, "f(1);g(2)\n", ""},
		"test data":                   {"testdata/a", long, "TODO\n", ""},
		"rewritten in few lines":      {"a.py", inside, "def f(a):\n    # One step is enough.\n    return h(a)\n", ""},
		"a function with its comment": {"a.py", calc, "\"\"\"Arithmetic.\"\"\"\n\n# The sum of both.\ndef add(a, b):\n    return a + b\n", ""},
		"a comment before new code":   {"a.py", calc, "\"\"\"Arithmetic.\"\"\"\n\n# Operators have all of it.\nfrom operator import add, mul, sub\n", ""},
		"a new beginning":             {"a.sh", long, "#!/bin/sh\n# Builds everything.\n\nmake all\n", ""},
		"a heading":                   {"a.py", calc, "\"\"\"Arithmetic.\"\"\"\n\n# --- the sum ---\n\nfrom operator import add\n", ""},
		"code that was switched off":  {"a.py", inside, "def f(a):\n    # a = g(a, 0)\n    return a\n", ""},
		"a long comment":              {"a.py", inside, "def f(a):\n    # It is\n    # known\n    # that f\n    # does nothing\n    return a\n", ""},
	} {
		err := CheckContent(c.name, []byte(c.old), []byte(c.text))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestNoOmissions(t *testing.T) {
	for name, c := range map[string]struct{ name, old, text string }{
		"a Python body":              {"a.py", "", "class A:\n    ...\n\ndef f(): ...\n\n@overload\ndef g(x: int) -> int: ...\n"},
		"a body in place of pass":    {"a.py", "class A:\n    pass\n\nx = 1\n", "class A:\n    ...\n\nx = 1\n"},
		"an overload":                {"a.py", "def f(x):\n    return x\n", "@overload\ndef f(x: int) -> int: ...\ndef f(x):\n    return x\n"},
		"a class becomes a protocol": {"a.py", "class A(ABC):\n    @abstractmethod\n    def f(self):\n        \"\"\"F.\"\"\"\n        raise NotImplementedError\n", "class A(Protocol):\n    def f(self) -> int: ...\n"},
		"a protocol is added":        {"a.py", "def f(x):\n    return g(x)\n\ndef h():\n    return 1\n", "class F(Protocol):\n    def __call__(self, x: int) -> int: ...\n\ndef f(x):\n    return x\n\ndef h():\n    return 1\n"},
		"a comment about the code":   {"a.py", "def f(x):\n    y = x\n    z = y\n    return z\n", "def f(x):\n    return x  # the rest is done by the caller\n"},
		"a comment on a whole line":  {"a.py", "def f(x):\n    y = x\n    z = y\n    return z\n", "def f(x):\n    z = x  # unchanged\n    return z\n"},
		"a comment after a function": {"a.go", "func f() int {\n\tx := 1\n\ty := x\n\treturn y\n}\n", "func f() int { // same as before, but shorter\n\treturn 1\n}\n"},
		"an error's text":            {"a.py", "def f(x):\n    check(x)\n    y = x\n    return y\n", "def f(x):\n    raise ValueError(\"the file is unchanged\")\n"},
		"a stub":                     {"a.pyi", "def f(x): pass\ndef g(x): pass\n", "def f(x): ...\n# ...\n"},
		"a doctest":                  {"a.py", "", "def f():\n    \"\"\"\n    >>> f()\n    ...\n    \"\"\"\n"},
		"spread":                     {"a.js", "", "const a = {\n  ...rest,\n  ...existing,\n  ...other\n};\nf(...remaining);\n"},
		"a variadic function":        {"a.go", "", "func f(rest ...string) { g(rest...) }\n"},
		"an empty comment":           {"a.js", "", "function f() {\n  // ...\n}\n"},
		"a menu":                     {"a.go", "", "menu(\"Open existing file...\")\nlog(\"Loading the rest...\")\n"},
		"a sentence":                 {"a.go", "", "// The rest of the code assumes that x is set.\n// ...and the existing file is kept if it is newer.\n"},
		"a comment about order":      {"a.go", "", "// remaining files are removed below\n// existing entries stay where they are in the list\n"},
		"prose":                      {"a.md", "", "Wait… the rest is unchanged …\n\n```js\n// ... existing code ...\n```\n"},
		"an example in a comment":    {"a.go", "", "//\tf()\n//\t... rest of the program ...\n"},
		"a test about ellipsis":      {"a_test.go", "", "var s = `\n# ... rest of the file unchanged ...\n`\n"},
		"a prompt about ellipsis":    {"p.py", "", "PROMPT = \"\"\"\n# ... existing code ...\n\"\"\"\n"},
		"a string":                   {"a.py", "", "bad = [\n    \"# ... existing code ...\",\n]\n"},
		"test data":                  {"testdata/x.py", "", "# ... existing code ...\n"},
		"a remark in a new file":     {"a.js", "", "// remaining items are skipped\n// keep existing handlers\nexport const x = 1\n"},
		"a remark, none lost":        {"a.js", "f()\n", "// keep existing handlers\nf()\n"},
		"the rest of a sentence":     {"a.go", "f()\ng()\nh()\n", "f()\n// If g fails, the file\n// is unchanged.\nh()\n"},
		"the upper part removed":     {"a.py", calc, calc[strings.Index(calc, "def mul"):]},
		"the upper part, as imports": {"a.py", "x = 1\nimport os\ny = 2\nz = 3\n", "import os\nz = 4\n"},
		"a value with line breaks":   {"a.properties", "", `a=b\nc\n`},
		"a new comment, none lost":   {"a.py", "x = 1\ny = 2\n", "x = 1\n# ...\ny = 2\n"},
		"deleted lines, no comment":  {"a.py", "x = 1\ny = 2\nz = 3\n", "x = 1\n"},
		"YAML's end":                 {"a.yaml", "", "---\na: 1\n...\n"},
		"a fence in a document":      {"a.md", "", "```sh\nmake\n```\n"},
		"a patch":                    {"fix.patch", "", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"},
		"numbered data":              {"a.tsv", "", "1\ta\n2\tb\n"},
		"a YAML map of numbers":      {"a.yml", "", "1: a\n2: b\n"},
		"entities":                   {"a.html", "", "<p>a &lt; b</p>\n"},
		"an escaper":                 {"a.py", "", "s = s.replace('<', '&lt;').replace('>', '&gt;')\n"},
		"minified":                   {"a.js", "", `f("a\nb\nc")`},
		"a fence in a docstring":     {"a.py", "", "def f():\n    \"\"\"F.\n\n```\nf()\n```\n    \"\"\"\n"},
		"a fence in a comment":       {"a.kt", "", "/**\n```\nf()\n```\n*/\nfun f() = 1\n"},
		"a fence in a heredoc":       {"a.sh", "", "cat <<E\n```\nx\n```\nE\n"},
		"a document with a fence":    {"a.md", "", "Use it:\n\n```sh\nmake\n```\n"},
		"a conflict in a document":   {"a.md", "", "# Conflicts\n\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> x\n"},
		"a list":                     {"a.yaml", "a:\n- b\n", "- a\n-  b\n- c\n"},
		"a script":                   {"a.sed", "", "s/a/b/\n"},
		"a shell script":             {"a.sh", "", "sed -i 's/a/b/' calc.py\n"},
		"an operator at the line":    {"a.hs", "x\n", "  x\n+ y\n"},
		"SEARCH in a string":         {"a.py", "", "s = '''\n<<<<<<< SEARCH\n=======\n>>>>>>> REPLACE\n'''\n"},
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
		"opens a Markdown fence":                {"```python\n{new}```\n", "```\n{new}```", "\n~~~\n{new}~~~\n", "Here is the new file:\n```python\n{new}```\n", "Here it is:\n\n```python\n{new}```\nIt adds now.\n"},
		"each line begins with a blank, + or -": {" def add(a, b):\n-    return a // b\n+    return a + b\n", " def mul(a, b):\n+    b = a\n\n     return a * b\n"},
		"has the markers of a conflict":         {"x = 1\n<<<<<<< HEAD\nx\n=======\ny\n>>>>>>> new\nz = 2\n", "<<<<<<< ORIGINAL\nx\n=======\ny\n>>>>>>> UPDATED\n"},
		"NUL character":                         {"x = '\x00'\n"},
		"it is a diff": {"--- a/calc.py\n+++ b/calc.py\n@@ -3,2 +3,2 @@\n-x\n+y\n", "diff --git a/calc.py b/calc.py\n@@ -1 +1 @@\n", "*** Begin Patch\n*** Update File: calc.py\n@@\n-x\n+y\n*** End Patch\n", "@@ -1,2 +1,2 @@\n-x\n+y\n",
			"*** calc.py\n--- calc.py\n***************\n*** 2 ****\n! x\n--- 2 ----\n! y\n", "4c4\n< x\n---\n> y\n"},
		"SEARCH/REPLACE":         {"<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\n", "------- SEARCH\nx\n=======\ny\n+++++++ REPLACE\n"},
		"begins with a number":   {"0001: a\n0002: b\n0003:\n0004: c\n", "1: a\n2: b\n", "     1\ta\n     2\tb\n", "1 | a\n2 |\n3 | b\n", "  1→a\n  2→b\n", "0007: a\n"},
		"in place of line break": {`def add(a, b):\n    return a + b\n`, `a=b\nc=d\n`},
		"HTML entities": {"\"\"\"Arithmetic.\"\"\"\nx = a &#43; b\n", "x = a &#x2b; b\n", "x = a &plus; b\n", "print(&quot;a&quot;)\n", "print(&#39;a&#39;, a &gt; b)\n", "x = a &lpar;b&rpar; < 2 and 'x' != \"</p>\"\n", "if a &lt; b and c > d: # 'x\n    pass\n", "x =&nbsp;1\n",
			"if a &lt; b:\n    pass\n", "\"\"\"Arithmetic.\"\"\"\nf = lambda a: a &amp;&amp; b\n"},
		"a part of the file": {"def mul(a, b):\n    return b * a\n", "    return a + b\n"},
	} {
		for _, text := range texts {
			text = strings.ReplaceAll(text, "{new}", calc)
			if err := CheckContent("calc.py", []byte(calc), []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %s", text, err, want)
			}
		}
	}
	for name, text := range map[string]string{"a.html": "&lt;p&gt;a&lt;/p&gt;\n", "a.cpp": "std::vector<int> v;\nbool b = x &amp;&amp; y;\n", "a.go": "package a\n\nvar x = a &#43; b\n", "a.js": "const f = a =&gt; a;\n",
		"a.rs": "fn f<'a>(x: &'a str) -> bool { x &lt; y }\n", "a.sh": "a &amp;&amp; b\n"} {
		if err := CheckContent(name, nil, []byte(text)); err == nil || !strings.Contains(err.Error(), "HTML entities") {
			t.Errorf("%s: %q: %v", name, text, err)
		}
	}
	if err := CheckEdit("a.go", []byte("x := a - b\n"), []byte("x := a &#43; b\n"), []string{"a &#43; b"}); err == nil || !strings.Contains(err.Error(), "newText: line 1") {
		t.Errorf("in an edit: %v", err)
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
		{"a\r\n\nb\r\n\r\n", "\na\n\nb", "\r\na\r\n\r\nb"},
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
