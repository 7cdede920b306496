package reconcile

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"hone"
	"hone/check"
	"hone/internal/config"
	"hone/internal/git"
	"hone/loop"
	"hone/sandbox"
	"hone/workspace"
	"hone/workspace/secret"
)

//go:embed help.md
var help string

// Kind is what reconcile declares of itself.
func Kind() loop.Kind {
	return loop.Kind{
		Name: "reconcile", Help: loop.ReadHelp(help), Root: root,
		Args: func(args []string) error {
			if len(args) > 1 {
				return loop.Usage(fmt.Sprintf("one SOURCE_DIR is expected, but there are %d arguments", len(args)), `name one directory; hone has no code database, and the check is a flag: --check "make test"`)
			}
			return nil
		},
		Programs: programs,
		New:      func() loop.Loop { return &Loop{} },
		Starters: starterFiles,
	}
}

func root(dir string) (string, error) {
	abs, err := loop.AbsDir(dir)
	if err != nil {
		return "", err
	}
	top, err := git.Root(abs)
	if errors.Is(err, git.ErrNotRepository) {
		return "", loop.UsageOf(err, "reconcile needs a git repository: cd into one, name it with --dir, or: git init")
	}
	return top, err
}

// Resolve reads flags, environment, .config/hone.toml and .config/bork.json.
func (l *Loop) Resolve(_ context.Context, in *loop.Input) (err error) {
	bork, err := config.Bork(in.Root)
	if err != nil {
		return loop.UsageOf(err, "nothing was sent or written")
	}
	l.System, l.Checker, l.Approve, l.NotSent = System, bork.Checker, bork.Approve, bork.NotSent
	scope, err := scope(in)
	if err != nil {
		return err
	}
	l.Settings, err = in.Settings()
	l.Task = scope
	if err != nil || in.Preview {
		return err
	}
	return l.ready(in)
}

func programs(root string) ([]string, error) {
	bork, err := config.Bork(root)
	if err != nil {
		return nil, loop.UsageOf(err, "nothing was sent or written")
	}
	if bork.Checker == "" {
		return nil, nil
	}
	return []string{bork.Checker + " (correctness-checker in " + config.BorkPath + ", without walls unless you name one)"}, nil
}

// It is empty if SOURCE_DIR is the root.
func scope(in *loop.Input) (string, error) {
	if len(in.Args) == 0 {
		return "", nil
	}
	rel, ok, err := in.Below(in.Args[0])
	info, statErr := os.Stat(filepath.Join(in.Root, rel))
	switch {
	case err != nil || statErr != nil || !info.IsDir():
		return "", loop.Usage(fmt.Sprintf("SOURCE_DIR %s is not a directory", in.Args[0]), "hone reconcile src")
	case !ok:
		return "", loop.Usage(fmt.Sprintf("SOURCE_DIR %s is not in the repository %s", in.Args[0], in.Root), "name the repository with --dir")
	case rel == ".":
		return "", nil
	}
	return rel, nil
}

// It fails if the starter's specification was not edited or the checker cannot run, and notes that "auto" does not apply to the checker.
func (l *Loop) ready(in *loop.Input) error {
	const example = "specs/example.md"
	if text, _, err := in.Tree.Read(example); err == nil {
		if err := loop.CheckEdited(example, string(text), starters, "starters/"+example); err != nil {
			return err
		}
	}
	if l.Checker == "" {
		return nil
	}
	// Without the checker no round could end well.
	info, err := os.Stat(filepath.Join(in.Root, filepath.FromSlash(l.Checker)))
	stop := &hone.Stop{Kind: hone.KindFailed, Why: fmt.Sprintf("the correctness checker %s, which %s names, cannot run", l.Checker, config.BorkPath)}
	switch {
	case err != nil:
		stop.Err, stop.Next.First = err, "write it, or correct its path"
		return stop
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		stop.Why += ": it is not executable"
		stop.Next.First = "chmod +x " + l.Checker
		return stop
	}
	if config.Wall.Given(in.Flags) == string(sandbox.Auto) {
		in.Note("the correctness checker is your own program and runs without walls; a wall that you name, such as --sandbox hidden, applies to it too")
	}
	return nil
}

// Build puts loop and checks together.
func (l *Loop) Build(s loop.Session) (built loop.Built, err error) {
	repo := s.Repo()
	l.prepare(repo, s.Guard())
	if !s.Replayed() {
		l.Say = s.IO().Say
	}
	r := s.NewRun(l.Rules())
	r.Words = words
	if repo == nil && !s.Replayed() {
		return built, &hone.Stop{Kind: hone.KindFailed, Why: s.Root() + " is no longer a git repository",
			Next: hone.Next{First: "restore its .git", Verb: hone.Resume}}
	}
	if err := s.SetModel(&l.Editor, &l.Model, nil); err != nil {
		return built, err
	}
	walls := s.Walls(loop.WallPlan{Protect: l.Rules().Immutable, Later: l.Check == "" && (l.Checker == "" || !l.Walls.Named())})
	s.SetCheck(walls, func(tree *workspace.Tree, w loop.Walls) check.Func { return l.check(s, tree, w) })
	return loop.Built{Run: r, Round: l.Round, Summary: summary, Asking: l.Checker != "" && !l.Walls.Named() && s.IO().Terminal != nil}, nil
}

// The words are the seed's (ruling B8).
func summary(end hone.End) string {
	if end.Kind != hone.KindRounds {
		return ""
	}
	return "human intervention needed: the rounds are used up\n"
}

func (l *Loop) prepare(repo *git.Repo, guard *secret.Guard) {
	l.Repo, l.Guard, l.Editor = repo, guard, l.Model.Role("editor", l.WithAdvice(l.System))
}

// The correctness checker comes before the command of --check; nil if there is neither. The checker is the user's own program:
// it gets the user's environment, and runs behind walls only if the settings name a wall. Without walls it reads from the
// user's terminal, so that it can ask them.
func (l *Loop) check(s loop.Session, tree *workspace.Tree, w loop.Walls) check.Func {
	var checks []check.Func
	if l.Checker != "" {
		runner, terminal := s.Unwalled(), s.IO().Terminal
		if l.Walls.Named() {
			var names []string
			for _, kv := range s.IO().Environ {
				name, _, _ := strings.Cut(kv, "=")
				names = append(names, name)
			}
			runner, terminal = w.With(names), nil
		}
		checks = append(checks, check.Bork(runner, check.BorkConfig{Checker: l.Checker, Stdin: terminal, Program: check.Program{
			Dir: tree.Dir(), Env: s.IO().Environ, Timeout: config.CheckTimeout.In(l.Values), Redact: s.Guard().Redact, Live: s.IO().CheckOutput}}))
	}
	return check.All(append(checks, s.Check(tree, w))...)
}

//go:embed starters
var starters embed.FS

func starterFiles() loop.Starters {
	return loop.Starters{
		Short: "a specification, a correctness checker and .config/bork.json",
		Files: func(string, string, func(string)) ([]loop.File, error) { return loop.Files(starters, "starters") },
		Next: func(_, _ string) string {
			return "write what you want into specs/, add your own checks to correctness-check.sh, then: hone prompt reconcile && hone reconcile"
		},
	}
}
