package crashtest

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"

	"hone/history"
	"hone/journal"
	"hone/workspace"
)

// announced are the edits that an event says are about to be made.
func announced(e journal.Event) []workspace.Verdict {
	var a history.Applied
	if e.Type != history.TypeApply || e.Phase != journal.Begin {
		return nil
	}
	must(0, e.Decode(&a))
	return a.Verdicts
}

// tear leaves a workspace as a process does that dies while it makes a change:
// so many of its edits are in place, and the temporary files of the others
// stand beside their targets, the last one torn.
func tear(dir string, e journal.Event, made int) {
	home := must(journal.FindHome(dir))
	defer home.Close()
	for i, v := range announced(e) {
		path := filepath.Join(dir, filepath.FromSlash(v.Path))
		if !v.After.Exists() {
			if i < made {
				must(0, os.Remove(path))
			}
			continue
		}
		content := must(home.Get(v.After.Digest))
		must(0, os.MkdirAll(filepath.Dir(path), 0o755))
		temp := filepath.Join(filepath.Dir(path), temporary(v))
		if i == len(announced(e))-1 {
			content = content[:len(content)/2]
		}
		must(0, os.WriteFile(temp, content, 0o600))
		if i < made {
			must(0, os.WriteFile(temp, must(home.Get(v.After.Digest)), 0o600))
			must(0, os.Chmod(temp, mode(path, v)))
			must(0, os.Rename(temp, path))
		}
	}
}

// mode is the permission bits that a file is to have.
func mode(path string, v workspace.Verdict) fs.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return fs.FileMode(v.After.Mode).Perm()
}

// temporary is the name that an edit's temporary file has; see the package
// workspace.
func temporary(v workspace.Verdict) string {
	sum := sha256.Sum256([]byte(v.Path + "\x00" + v.After.Digest))
	return ".hone~" + hex.EncodeToString(sum[:12])
}

// outside are the files that the workspace's run took for changed by others.
func outside(dir string) []string {
	home := must(journal.FindHome(dir))
	defer home.Close()
	var paths []string
	for _, e := range must(home.Read(must(home.Find("last")))) {
		var o history.Outside
		if e.Type == history.TypeOutside {
			must(0, e.Decode(&o))
			paths = append(paths, o.Paths...)
		}
	}
	return paths
}
