package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/template"

	"hone/cmd/hone/kinds"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"hone/internal/config"
	"hone/internal/render"
)

var update = flag.Bool("update", false, "write docs/configuration.md")

// TestConfigurationPage checks that docs/configuration.md is what the program says: its
// help topics, flags and settings. With -update it writes the page.
func TestConfigurationPage(t *testing.T) {
	const path = "../../docs/configuration.md"
	page, err := template.New("configuration.md.tmpl").Funcs(template.FuncMap{
		"topic":     func(name string) string { return render.Fill(topicText(t, name), helpColumns) },
		"opens":     settingsThatOpen,
		"loopFlags": loopFlagRows,
	}).ParseFiles("testdata/configuration.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	if err := page.Execute(&want, nil); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := gocmp.Diff(want.String(), string(got)); d != "" {
		t.Errorf("docs/configuration.md is not up to date; run make docs:\n%s", d)
	}
}

// opening is what settings of a section open.
type opening struct{ section, text string }

// settingsThatOpen returns the rows of the settings that need trust.
func settingsThatOpen() string {
	settings := map[opening][]string{}
	collectOpenings(settings, "prices.NAME", reflect.TypeFor[config.Price](), "costs are counted at this price")
	collectOpenings(settings, "commands.NAME", reflect.TypeFor[config.Agent](), "this program takes the place of a model, as you")
	for _, r := range config.Table() {
		section, key, _ := strings.Cut(r.Key, ".")
		for _, loop := range strings.Fields(cmp.Or(r.Sections, "LOOP")) {
			if o := (opening{strings.Replace(section, "LOOP", loop, 1), r.Opens}); key != "" && r.Opens != "-" && r.Opens != "program" {
				settings[o] = append(settings[o], key)
			}
		}
	}
	var rows []string
	for o, keys := range settings {
		rows = append(rows, fmt.Sprintf("| `[%s]` | `%s` | %s |\n", o.section, strings.Join(keys, "`, `"), cell(o.text)))
	}
	slices.Sort(rows)
	return strings.Join(rows, "")
}

// collectOpenings adds the settings of a section, and of those in it. Around is the tag of
// the section itself.
func collectOpenings(settings map[opening][]string, section string, of reflect.Type, around string) {
	for f := range of.Fields() {
		key, kind := f.Tag.Get("toml"), f.Type
		text := cmp.Or(f.Tag.Get("opens"), around)
		if kind.Kind() == reflect.Map {
			key, kind = key+".NAME", kind.Elem()
		}
		switch {
		case f.Anonymous:
			collectOpenings(settings, section, kind, around)
		case kind.Kind() == reflect.Struct:
			collectOpenings(settings, strings.TrimPrefix(section+"."+key, "."), kind, text)
		case key != "" && key != "-" && text != "-" && text != "program":
			settings[opening{section, text}] = append(settings[opening{section, text}], key)
		}
	}
}

// loopFlagRows returns the rows of the loops' flags. Loops whose flags mean the same share
// a row.
func loopFlagRows() string {
	type row struct{ flag, meaning string }
	loops := map[row][]string{}
	for _, c := range (&app{}).groups()[0].commands {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			name, meaning := flagRow(f)
			if r := (row{cell(name), cell(meaning)}); !f.Hidden {
				loops[r] = append(loops[r], c.Name())
			}
		})
	}
	var rows []string
	for r, of := range loops {
		text := strings.Join(of, ", ")
		if len(of) == len(kinds.All()) {
			text = "all"
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", r.flag, text, r.meaning))
	}
	slices.SortFunc(rows, func(a, b string) int { return strings.Compare(longName(a), longName(b)) })
	return strings.Join(rows, "")
}

// longName returns the part of a row that begins with the long name of its flag.
func longName(row string) string {
	_, name, _ := strings.Cut(row, "--")
	return name
}

// cell returns a text for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
