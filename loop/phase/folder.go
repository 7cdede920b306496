package phase

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"hone"
	"hone/history"
	"hone/loop"
	"hone/model"
	"hone/tool"
)

// inFolder returns tools for which a path that starts with the role's own directory
// means that directory, because the specifications and many prompts call it so
// (ruling A15): "src/main.go" is main.go for the builder. A directory of that name
// within it keeps its own paths. dir is the absolute path of the role's directory.
func inFolder(tools []tool.Tool, dir string) []tool.Tool {
	inside := make([]tool.Tool, len(tools))
	misses := regexp.MustCompile(regexp.QuoteMeta(filepath.Base(dir)) + ".*No such file or directory")
	for i, t := range tools {
		run := t.Run
		t.Run = func(ctx context.Context, in tool.Input) (tool.Result, error) {
			name := filepath.Base(dir)
			if info, err := os.Lstat(filepath.Join(dir, name)); err == nil && info.IsDir() {
				return run(ctx, in)
			}
			if !t.RunsCommands {
				in.Args = withoutFolder(in.Args, name)
				return run(ctx, in)
			}
			got, err := run(ctx, in)
			if misses.MatchString(got.Text) {
				got.Text += fmt.Sprintf("\n[The working directory is %s/ itself: in a command, write NAME, not %[1]s/NAME.]\n", name)
			}
			return got, err
		}
		inside[i] = t
	}
	return inside
}

func withoutFolder(args json.RawMessage, name string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil {
		return args
	}
	for _, key := range []string{"path", "root"} {
		var p string
		if json.Unmarshal(all[key], &p) != nil {
			continue
		}
		if rest, ok := strings.CutPrefix(strings.TrimPrefix(p, "./")+"/", name+"/"); ok {
			all[key], _ = json.Marshal(cmp.Or(strings.TrimSuffix(rest, "/"), "."))
		}
	}
	text, _ := json.Marshal(all) // of JSON
	return text
}

// If the role's prompt names the project root, what its commands then left in a new directory of the same name, such as
// src/src/, is moved to where it was meant to be (ruling A15).
func (l *Loop) talkIn(ctx context.Context, r *hone.Run, role hone.Role, messages []model.Message) (hone.Conversation, error) {
	if !l.NamesRoot[role.Name] {
		return loop.Converse(ctx, r, role, messages)
	}
	nested := filepath.Join(r.Tree.Dir(), role.Dir, filepath.Base(role.Dir))
	had, err := hone.Step(ctx, r, "own folder", role.Dir, func(context.Context) (bool, error) {
		_, err := os.Lstat(nested)
		return err == nil, nil
	})
	if err != nil {
		return hone.Conversation{}, err
	}
	talk, err := loop.Converse(ctx, r, role, messages)
	if err != nil || had {
		return talk, err
	}
	_, err = repeatable(ctx, r, "move up", func(context.Context) (history.Report, error) {
		moved, err := moveUp(filepath.Dir(nested), filepath.Base(nested))
		if err != nil || !moved {
			return history.Report{}, err
		}
		return history.Report{Said: fmt.Sprintf("%s/%s/ was moved to %s/", role.Dir, filepath.Base(nested), role.Dir)}, nil
	})
	return talk, err
}

// What has the names of the entries in dir is replaced, and directories are merged. It may be repeated after an interruption.
func moveUp(dir, name string) (moved bool, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, err
	}
	defer root.Close()
	if info, err := root.Lstat(name); err != nil || !info.IsDir() {
		return false, nil
	}
	stays := false
	err = fs.WalkDir(root.FS(), name, func(at string, e fs.DirEntry, err error) error {
		target, below := strings.CutPrefix(at, name+"/")
		switch {
		case err != nil || !below:
			return err
		case target == ".git": // belongs to the loop
			return fs.SkipDir
		case target == name: // an entry of its own name
			stays = true
			return fs.SkipDir
		}
		if info, err := root.Lstat(target); err == nil && info.IsDir() != e.IsDir() {
			if err := root.RemoveAll(target); err != nil {
				return err
			}
		}
		if e.IsDir() {
			return root.MkdirAll(target, 0o755)
		}
		return root.Rename(at, target)
	})
	if err == nil && !stays {
		err = root.RemoveAll(name)
	}
	return true, err
}
