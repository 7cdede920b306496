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
			if got := fmt.Sprint(p.values(document(t, doc))); got != c.want {
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
		want int64
		is   found
	}{
		{"a.x", 1, count},
		{"a.*", 3, count},
		{"a.x + a.y", 3, count},
		{"a.x + missing", 1, count},
		{"missing + gone", 0, missing},
		{"a.z", 0, wrong},
		{"a.x + a.z", 1, wrong},
		{"a", 0, wrong},
		{"neg", 0, wrong},
		{"part", 0, wrong},
		{"zero", 0, count},
		{"nil", 0, null},
		{"a.x + nil", 1, null},
		{"list.*", 3, wrong},
		{"list.*.n", 0, missing},
		{"most", model.MaxTokens, count},
		{"most + a.x", model.MaxTokens, wrong},
		{"huge + huge", 0, wrong},
		{"endless", 0, wrong},
	} {
		t.Run(c.sum, func(t *testing.T) {
			s, err := parseSum(c.sum)
			if err != nil {
				t.Fatal(err)
			}
			if got, is := s.evaluate(doc); got != c.want || is != c.is {
				t.Errorf("got %d, %d, want %d, %d", got, is, c.want, c.is)
			}
		})
	}
}

func TestInvalidPaths(t *testing.T) {
	for _, text := range []string{"a..b", ".a", "a.", "a.[k=v]", "a[k]", "a[=v]", "a[k=v", "a[k=v]b", "a + ", "a + b..c"} {
		if _, err := parseSum(text); err == nil {
			t.Errorf("%q is a path", text)
		}
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
