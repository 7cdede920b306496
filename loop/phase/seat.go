package phase

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hone/tool"
)

// inSeat returns tools for which a path that starts with the role's own directory
// means that directory, because the specifications and many prompts call it so
// (ruling A15): "src/main.go" is main.go for the builder. A directory of that name
// within it keeps its own paths. dir is the absolute path of the role's directory.
func inSeat(tools []tool.Tool, dir string) []tool.Tool {
	seat := make([]tool.Tool, len(tools))
	for i, t := range tools {
		run := t.Run
		t.Run = func(ctx context.Context, in tool.Input) (tool.Result, error) {
			if info, err := os.Lstat(filepath.Join(dir, filepath.Base(dir))); err != nil || !info.IsDir() {
				in.Args = withoutSeat(in.Args, filepath.Base(dir))
			}
			return run(ctx, in)
		}
		seat[i] = t
	}
	return seat
}

// withoutSeat removes the name of a directory from the start of the paths in a
// call's arguments.
func withoutSeat(args json.RawMessage, name string) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(args, &all) != nil {
		return args
	}
	changed := false
	for _, key := range []string{"path", "root"} {
		var p string
		if json.Unmarshal(all[key], &p) != nil {
			continue
		}
		rest, ok := strings.CutPrefix(strings.TrimPrefix(p, "./")+"/", name+"/")
		if !ok {
			continue
		}
		if rest = strings.TrimSuffix(rest, "/"); rest == "" {
			rest = "."
		}
		all[key], _ = json.Marshal(rest)
		changed = true
	}
	if !changed {
		return args
	}
	text, err := json.Marshal(all)
	if err != nil {
		return args
	}
	return text
}

// misplaced returns the note about a prompt of the user's own that calls the role's
// working directory the project root; empty if it does not.
func misplaced(role, text, folder string) string {
	if !strings.Contains(strings.ToLower(text), "project root") {
		return ""
	}
	return fmt.Sprintf("prompts/%s.md mentions the project root, but the %s works in %s/: paths such as %s/NAME mean NAME there; correct the prompt, or remove it to use hone's own", role, role, folder, folder)
}
