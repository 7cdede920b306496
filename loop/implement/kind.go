package implement

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hone/check"
	"hone/internal/artifact"
	"hone/internal/config"
	"hone/internal/render"
	"hone/loop"
	"hone/workspace"
	"hone/workspace/secret"
)

//go:embed help.md
var help string

// Kind is what implement declares of itself.
func Kind() loop.Kind {
	return loop.Kind{
		Name: "implement", Help: loop.ReadHelp(help), Text: true,
		Key: func(tree *workspace.Tree) (loop.Key, error) {
			text, ok, err := readInput(tree, KeyName)
			key := loop.Key{File: KeyName, Variable: "GEMINI_API_KEY", Value: strings.TrimSpace(text)}
			if err == nil && ok && key.Value == "" {
				err = loop.Usage(KeyName+" is empty", "write the key into it, or remove it and set GEMINI_API_KEY")
			}
			return key, err
		},
		Programs: func(root string) ([]string, error) {
			if _, err := os.Lstat(filepath.Join(root, BuildName)); err != nil {
				return nil, nil
			}
			return []string{BuildName}, nil
		},
		New:      func() loop.Loop { return &Loop{} },
		Starters: starterFiles,
	}
}

// Own reports whether a file is one of the loop's logs.
func (l *Loop) Own(string) func(string) bool { return Own }

// Resolve reads flags, environment, the directory's files and the configuration.
func (l *Loop) Resolve(ctx context.Context, in *loop.Input) (err error) {
	query, err := readQuery(in)
	if err != nil {
		return err
	}
	if l.System, _, err = readInput(in.Tree, SystemName); err != nil {
		return err
	}
	l.System = cmp.Or(l.System, System)
	if _, l.HasBuild, err = readInput(in.Tree, BuildName); err != nil {
		return err
	}
	if l.Choose, err = chooses(ctx, in); err != nil {
		return err
	}
	l.Settings, err = in.Settings()
	l.Task = query
	if l.System == System && l.Check != "" {
		l.System += "\n# The user's check\n\n" + render.Line(l.Check) + "\n"
	}
	switch {
	case err != nil || in.Preview:
		return err
	case !l.HasBuild && l.Check == "":
		return loop.Usage("nothing decides whether the result is right: there is neither build.sh nor --check",
			`hone init implement, or: hone implement --check "make test"`)
	}
	return loop.CheckFiles(in.Root, LogsName+"/new", OutputName)
}

// It refuses a flag that names no file.
func chooses(ctx context.Context, in *loop.Input) (bool, error) {
	globs := config.Files.Given(in.Flags)
	if globs == nil {
		return config.SelectAbove.Given(in.Flags) > 0, nil
	}
	files, err := in.Tree.Manifest(ctx, nil)
	if err != nil {
		return false, err
	}
	if _, unknown := pick(base(files), globs); len(unknown) > 0 {
		return false, loop.Usage("--files: no file matches "+unknown[0], "hone implement --files 'src/**,go.mod'")
	}
	return true, nil
}

func readQuery(in *loop.Input) (string, error) {
	query, file := config.Query.Given(in.Flags), config.QueryFile.Given(in.Flags)
	switch {
	case len(in.Args) > 0 && query+file != "", query != "" && file != "":
		return "", loop.Usage("there is more than one query", "give one of TEXT, --query and --query-file")
	case len(in.Args) > 0, file == "-":
		from := *in
		if file != "" {
			from.Args = []string{file}
		}
		text, err := from.Text()
		if err != nil {
			return "", err
		}
		return validQuery("TEXT", text)
	case query != "":
		return query, nil
	case file != "":
		text, err := artifact.Input(file)
		if err != nil {
			return "", loop.Usage("--query-file: "+err.Error(), "name a file that can be read")
		}
		return validQuery(file, string(text))
	}
	text, ok, err := readInput(in.Tree, QueryName)
	if err != nil {
		return "", err
	}
	if !ok {
		if _, err := os.Stat(filepath.Join(in.Tree.Dir(), laterDir, QueryName)); err == nil {
			return "", loop.Usage("there is no query.txt; hone does not read "+laterDir+"/, which later versions of code-commit use",
				fmt.Sprintf("hone implement --query-file %s/%s; set GEMINI_API_KEY, and add %[1]s/ to .gitignore so that hone does not send it", laterDir, QueryName))
		}
		if in.Edit != nil && !in.Preview { // as later versions of code-commit do
			if text, err = in.Edit(QueryName); err != nil {
				return "", loop.UsageOf(err, `hone implement "what you want"`)
			}
		}
	}
	return validQuery(QueryName, text)
}

// laterDir is the directory of the inputs of later versions of code-commit.
const laterDir = "agent-config"

// It fails if the text is empty or still the starter's.
func validQuery(name, text string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", loop.Usage(fmt.Sprintf("there is no query: %s is missing or empty", name), `write it, or: hone implement "what you want"`)
	}
	return text, loop.CheckEdited(name, text, starters, "starters/implement/"+QueryName)
}

// Links are not followed: their targets may be outside the directory.
func readInput(tree *workspace.Tree, name string) (text string, ok bool, err error) {
	b, _, err := tree.Read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, loop.UsageOf(err, "replace it with a regular file")
	}
	return strings.TrimPrefix(string(b), "\ufeff"), true, nil
}

// Build puts loop and checks together.
func (l *Loop) Build(s loop.Session) (loop.Built, error) {
	l.prepare(s.Guard())
	if !s.Replayed() {
		l.Say = s.IO().Say
	}
	r := s.NewRun(l.Rules())
	r.Words = words
	if err := s.SetModel(&l.Coder, &l.Model, nil); err != nil {
		return loop.Built{}, err
	}
	walls := s.Walls(loop.WallPlan{Protect: append([]string{BuildName}, Inputs...)})
	s.SetCheck(walls, func(tree *workspace.Tree, w loop.Walls) check.Func {
		var checks []check.Func
		build := check.BuildConfig{MaxText: config.BuildOutput.In(l.Values),
			Program: check.Program{Dir: tree.Dir(), Timeout: config.BuildTimeout.In(l.Values), Live: s.IO().CheckOutput}}
		if config.OnlyNew.In(l.Values) {
			build.Reader = func(output string, exit int) []check.Finding { return s.ReadOutput(tree, output, exit) }
		}
		if l.HasBuild {
			logged := r
			if tree != r.Tree {
				logged = nil
			}
			checks = append(checks, l.BuildCheck(logged, w.With(config.CheckEnv.In(l.Values)), build))
		}
		return check.All(append(checks, s.Check(tree, w))...)
	})
	built := loop.Built{Run: r, Round: l.Round}
	if l.HasBuild {
		built.Checks = strings.TrimSuffix("./"+BuildName+", then "+l.Check, ", then ")
	}
	return built, nil
}

func (l *Loop) prepare(guard *secret.Guard) {
	l.Guard, l.Coder = guard, l.Model.Role("coder", l.WithAdvice(l.System))
}

//go:embed starters
var starters embed.FS

func starterFiles() loop.Starters {
	return loop.Starters{
		Short: "a build.sh that fits the code, query.txt and the system prompt",
		Files: func(_, check string, _ func(string)) ([]loop.File, error) {
			if check == "" {
				check = `echo "build.sh: write the commands here that build and test the project" >&2; exit 1`
			}
			script, err := starters.ReadFile("starters/build.sh")
			if err != nil {
				return nil, err
			}
			script = bytes.ReplaceAll(script, []byte("CHECK"), []byte(strings.ReplaceAll(check, " && ", "\n")))
			files, err := loop.Files(starters, "starters/implement")
			return append([]loop.File{{Path: BuildName, Content: script}, {Path: SystemName, Content: []byte(System)}}, files...), err
		},
		Next: func(_, check string) string {
			if check == "" {
				return "write the build and test commands into build.sh and what you want into query.txt, then: hone prompt implement && hone implement"
			}
			return "write what you want into query.txt, check build.sh, then: hone prompt implement && hone implement"
		},
	}
}
