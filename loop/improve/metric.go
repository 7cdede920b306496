package improve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"golang.org/x/perf/benchfmt"

	"hone/internal/render"
)

// values are the numbers of one output, by their names. A name may have several.
type values map[string][]float64

// alone is the name of a number that is the whole output.
const alone = "value"

// readMetric reads the output of a metric's command: lines METRIC name=number and those of go
// test -bench; or else the JSON of hyperfine, pytest-benchmark or criterion; or else one number.
func readMetric(out []byte) values {
	v := values{}
	for line := range bytes.Lines(out) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "METRIC ")
		name, text, cut := strings.Cut(rest, "=")
		if number, is := parseNumber(text); ok && cut && is {
			v.add(strings.TrimSpace(name), number)
		}
	}
	v.addBenchmarks(out)
	if len(v) == 0 {
		v.addJSON(out)
	}
	if number, is := parseNumber(string(out)); len(v) == 0 && is {
		v.add(alone, number)
	}
	return v
}

func parseNumber(text string) (number float64, ok bool) {
	text = strings.TrimSpace(text)
	number, err := strconv.ParseFloat(text, 64)
	return number, err == nil && isNumber(number) && !strings.ContainsAny(text, "_xX")
}

// isNumber reports whether a number is one, and small enough to be squared.
func isNumber(number float64) bool {
	return !math.IsNaN(number) && math.Abs(number) < 1e150
}

// add adds a number; what is none, such as NaN, it leaves out.
func (v values) add(name string, number float64) {
	if isNumber(number) {
		v[name] = append(v[name], number)
	}
}

// addBenchmarks adds each unit of a Go benchmark as Name/unit.
func (v values) addBenchmarks(out []byte) {
	r := benchfmt.NewReader(bytes.NewReader(out), "")
	for r.Scan() {
		result, ok := r.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		base, parts := result.Name.Parts()
		name := string(base)
		for _, part := range parts {
			if part[0] != '-' { // the number of processors
				name += string(part)
			}
		}
		for _, one := range result.Values {
			unit, number := cmp.Or(one.OrigUnit, one.Unit), one.Value
			if one.OrigUnit != "" {
				number = one.OrigValue
			}
			v.add(name+"/"+unit, number)
		}
	}
}

// addJSON adds the numbers of the first object in an output, if its form is known. A name
// begins with that of the command or the test if there are several.
func (v values) addJSON(out []byte) {
	var object json.RawMessage
	if json.NewDecoder(bytes.NewReader(out[max(0, bytes.IndexByte(out, '{')):])).Decode(&object) != nil {
		return
	}
	doc := gjson.ParseBytes(object)
	each := func(list []gjson.Result, stats, name string) {
		for _, one := range list {
			prefix := ""
			if len(list) > 1 {
				prefix = one.Get(name).String() + "/"
			}
			one.Get(stats).ForEach(func(key, number gjson.Result) bool {
				if number.Type == gjson.Number {
					v.add(prefix+key.String(), number.Num)
				}
				return true
			})
		}
	}
	switch hyperfine, pytest := doc.Get("results"), doc.Get("benchmarks"); {
	case hyperfine.IsArray():
		each(hyperfine.Array(), "@this", "command")
	case pytest.IsArray():
		each(pytest.Array(), "stats", "name")
	case doc.IsObject(): // criterion's estimates.json
		doc.ForEach(func(key, estimate gjson.Result) bool {
			if point := estimate.Get("point_estimate"); point.Type == gjson.Number {
				v.add(key.String(), point.Num)
			}
			return true
		})
	}
}

// numbersOf returns the values of the name that decides. A short name such as ns/op stands for
// the only one that ends with it.
func (v values) numbersOf(name string) ([]float64, error) {
	if got := v[name]; len(got) > 0 {
		return got, nil
	}
	var ending []string
	for full := range v {
		if strings.HasSuffix(full, "/"+name) {
			ending = append(ending, full)
		}
	}
	switch {
	case len(ending) == 1:
		return v[ending[0]], nil
	case len(v) == 0:
		return nil, errors.New("the metric printed no number that hone can read")
	}
	return nil, fmt.Errorf("the metric printed no number %s, but %s", name, render.Names(slices.Sorted(maps.Keys(v))))
}
