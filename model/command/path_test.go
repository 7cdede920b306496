package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"hone/model"
)

func document(t *testing.T, text string) any {
	t.Helper()
	for doc := range documents([]byte(text)) {
		return doc
	}
	t.Fatalf("no document in %s", text)
	return nil
}

func TestPath(t *testing.T) {
	const doc = `{"a":{"x":1,"y":2.0,"z":"3"},"list":[{"n":1,"k":"p"},{"n":2,"k":"q"},{"n":4,"k":"p"}],
		"n":5,"s":"top","t":true,"nil":null,"neg":-3,"huge":1e300,"endless":1e999,"a.b":6,"0":"zero"}`
	for _, c := range []struct{ path, want string }{
		{"n", "[5]"},
		{"a.x", "[1]"},
		{"a.*", "[1 2.0 3]"},
		{"list.0.n", "[1]"},
		{"list.*.n", "[1 2 4]"},
		{"list.3.n", "[]"},
		{"list.-1.n", "[]"},
		{"list.n", "[]"},
		{"0", "[zero]"},
		{"a.x.y", "[]"},
		{"missing.*.x", "[]"},
		{"list.*[k=p].n", "[1 4]"},
		{"list.1[k=p].n", "[]"},
		{"list.*[n=2].k", "[q]"},
		{"[t=true].s", "[top]"},
		{"[t=false].s", "[]"},
		{"[nil=null].s", "[top]"},
		{"[a=1].s", "[]"},
		{"[missing=].s", "[]"},
		{"a.b", "[]"},
	} {
		t.Run(c.path, func(t *testing.T) {
			p, err := parsePath(c.path)
			if err != nil {
				t.Fatal(err)
			}
			found := []any{}
			p.forEach(document(t, doc), func(v any) { found = append(found, v) })
			if got := fmt.Sprint(found); got != c.want {
				t.Errorf("found %s, want %s", got, c.want)
			}
		})
	}
}

func TestSum(t *testing.T) {
	doc := document(t, `{"a":{"x":1,"y":2.0,"z":"3"},"neg":-3,"huge":1e300,"endless":1e999,"zero":0,
		"part":1.5,"nil":null,"most":1099511627776,"list":[1,"x",2,-1,null]}`)
	for _, c := range []struct {
		sum  string
		want total
	}{
		{"a.x", total{n: 1, found: true}},
		{"a.*", total{n: 3, found: true}},
		{"a.x + a.y", total{n: 3, found: true}},
		{"a.x + missing", total{n: 1, found: true}},
		{"missing + gone", total{}},
		{"a.z", total{wrong: true}},
		{"a.x + a.z", total{n: 1, found: true, wrong: true}},
		{"a", total{wrong: true}},
		{"neg", total{wrong: true}},
		{"part", total{wrong: true}},
		{"zero", total{found: true}},
		{"nil", total{null: true}},
		{"a.x + nil", total{n: 1, found: true, null: true}},
		{"list.*", total{n: 3, found: true, wrong: true}},
		{"list.*.n", total{}},
		{"most", total{n: model.MaxTokens, found: true}},
		{"most + a.x", total{n: model.MaxTokens, found: true, wrong: true}},
		{"huge + huge", total{wrong: true}},
		{"endless", total{wrong: true}},
	} {
		t.Run(c.sum, func(t *testing.T) {
			s, err := parseSum(c.sum)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.evaluate(doc); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestInvalidPaths(t *testing.T) {
	for text, want := range map[string]string{
		"a..b":     "a name is empty",
		".a":       "a name is empty",
		"a.":       "a name is empty",
		"a.[k=v]":  "a name is empty",
		"a[k]":     "a bracket must contain name=value",
		"a[=v]":    "a bracket must contain name=value",
		"a[k=v":    "a bracket must contain name=value",
		"a[k=v]b":  "a dot must follow the bracket",
		"a + ":     "a plus sign must be between two paths",
		"a + b..c": "a name is empty",
	} {
		t.Run(text, func(t *testing.T) {
			if _, err := parseSum(text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error = %v, want %q", err, want)
			}
		})
	}
}

func TestDocuments(t *testing.T) {
	for name, c := range map[string]struct{ out, want string }{
		"nothing":                 {"", `[]`},
		"words":                   {"Loading.\nDone.\n", `[]`},
		"one":                     {`{"a":1}`, `[{"a":1}]`},
		"lines":                   {"{\"a\":1}\r\n{\"a\":2}\r\n", `[{"a":1},{"a":2}]`},
		"a list":                  {`[{"a":1},{"a":2}]`, `[{"a":1},{"a":2}]`},
		"of several lines":        {"{\n  \"a\": [\n    1\n  ]\n}\n", `[{"a":[1]}]`},
		"words around":            {"warning: x\n[WARN] {y}\n{\n \"a\": 1\n}\nDeprecated {\n{\"a\":2} bye\nend", `[{"a":1},{"a":2}]`},
		"one after another":       {`{"a":1}{"a":2} {"a":3}`, `[{"a":1},{"a":2},{"a":3}]`},
		"a cut line":              {"{\"a\":\n{\"a\":2}\n", `[{"a":2}]`},
		"a cut string":            {"{\"a\":\"x\n{\"a\":2}\n", `[{"a":2}]`},
		"cut at the end":          {"{\"a\":1}\n{\n  \"a\": {\n    \"b\":", `[{"a":1}]`},
		"an inner object stays":   {"{ broken\n  {\"a\":2}\n", `[]`},
		"a byte order mark":       {"\xef\xbb\xbf{\"a\":1}", `[{"a":1}]`},
		"NUL in a string":         {"{\"a\":\"\x00\"}\n{\"a\":2}", `[{"a":2}]`},
		"NUL between":             {"\x00{\"a\":1}\n{\"a\":2}\x00\n{\"a\":3}", `[{"a":2},{"a":3}]`},
		"not UTF-8":               {"\xff\n{\"a\":\"\xff\"}", `[{"a":"�"}]`},
		"a number of many digits": {`{"a":12345678901234567890}`, `[{"a":12345678901234567890}]`},
	} {
		t.Run(name, func(t *testing.T) {
			all := []any{}
			for doc := range documents([]byte(c.out)) {
				all = append(all, doc)
			}
			got, err := json.Marshal(all)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// Hostile output is read to its end, with the document after it.
func TestHostileDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: megabytes in one goroutine")
	}
	const last = "\n{\"last\":true}\n"
	for name, out := range map[string]string{
		"deep nesting":            strings.Repeat("[", 1<<20) + last,
		"deep nesting that ends":  strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + last,
		"a million lines":         strings.Repeat("{\"a\":1}\n", 1_000_000) + last,
		"many broken lines":       strings.Repeat("{\"a\":\n", 200_000) + last,
		"lists that never end":    strings.Repeat("[\n", 9000) + strings.Repeat("1,\n", 1<<20) + last,
		"a string that never end": `{"a":"` + strings.Repeat("x", 8<<20) + last,
		"very many values":        "[" + strings.Repeat("[],", 4<<20) + "0]" + last,
		"very many members":       "{" + strings.Repeat(`"a":{},`, 2<<20) + `"b":0}` + last,
	} {
		t.Run(name, func(t *testing.T) {
			var doc any
			for doc = range documents([]byte(out)) {
			}
			if got := fmt.Sprint(doc); got != "map[last:true]" {
				t.Errorf("last document = %.100s", got)
			}
		})
	}
}
