package main

import (
	"cmp"
	"io"
	"os"
	"reflect"
	"testing"

	"hone/cmd/hone/kinds"
	"hone/internal/config"
	"hone/loop"
)

// trustAll trusts all that a folder needs trust for, as a user who answered yes.
func trustAll(t *testing.T, dir string) {
	t.Helper()
	root, err := loop.AbsDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := &app{env: os.Getenv, out: io.Discard, err: io.Discard}
	if err := a.trustStarters(root); err != nil {
		t.Fatal(err)
	}
}

// Every key of every table either needs no trust, is a program of the folder, or says
// what it opens. A key that is added without the tag would be asked about without words.
func TestOpensEverything(t *testing.T) {
	for _, k := range kinds.All() {
		if s := k.New().Section(); s != nil {
			lacksOpens(t, k.Name, reflect.TypeOf(s).Elem(), "")
		}
	}
	lacksOpens(t, "", reflect.TypeFor[config.File](), "")
	file := reflect.TypeFor[config.File]()
	for name, want := range map[string]string{"Limits": "-", "Undo": "-"} {
		if f, _ := file.FieldByName(name); f.Tag.Get("opens") != want {
			t.Errorf("%s opens %q", name, f.Tag.Get("opens"))
		}
	}
}

// lacksOpens reports the keys of a table that have no tag "opens" and no table around
// them that has one.
func lacksOpens(t *testing.T, at string, table reflect.Type, around string) {
	t.Helper()
	for f := range table.Fields() {
		name := f.Tag.Get("toml")
		tag := cmp.Or(f.Tag.Get("opens"), around)
		switch {
		case name == "-" || name == "":
		case f.Type.Kind() == reflect.Struct:
			lacksOpens(t, at+"."+name, f.Type, tag)
		case f.Type.Kind() == reflect.Map:
			lacksOpens(t, at+"."+name, f.Type.Elem(), tag)
		case tag == "":
			t.Errorf("%s.%s does not say what it opens", at, name)
		}
	}
}
