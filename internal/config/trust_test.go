package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Openings that open something need trust, in either spelling and in inline tables. Limits
// and the like do not, nor does the check, which is a program of the folder.
func TestOpens(t *testing.T) {
	toy(t, "", Row{Key: "phase.secret"})
	text := `[model]
model = "openai/x"
base-url = "http://h/v1"
reasoning = "low"
context = 5
[limits]
rounds = 3
[check]
command = "make test"
protect = ["a"]
[phase]
rounds = 2
hook_env = ["A", "B"]
secret = "s"
[commands.x]
argv = ["x", "y"]
usage = {input = "a"}
timeout = "1m"
`
	f, err := Load(project(t, HonePath, text))
	if err != nil {
		t.Fatal(err)
	}
	setting := func(line int, key, value, opens string) Opening {
		return Opening{File: HonePath, Line: line, Key: key, Value: value, Opens: opens}
	}
	const agent = "this program takes the place of a model, as you"
	want := []Opening{
		setting(2, "model.model", `"openai/x"`, "your files are sent to this model, at your cost"),
		setting(3, "model.base-url", `"http://h/v1"`, "your files and the provider's key are sent to this address"),
		setting(13, "phase.hook-env", `["A", "B"]`, "hooks get these variables, even if they hold keys"),
		setting(14, "phase.secret", `"s"`, ""),
		setting(16, "commands.x.argv", `["x", "y"]`, agent),
		setting(17, "commands.x.usage.input", `"a"`, agent),
		setting(18, "commands.x.timeout", `"1m"`, agent),
	}
	if diff := cmp.Diff(want, f.Opens); diff != "" {
		t.Error(diff)
	}
	if text := f.Opens[0].String(); text != `.config/hone.toml: model.model = "openai/x"` {
		t.Error(text)
	}
}
