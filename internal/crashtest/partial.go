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

// announcedEdits returns the verdicts of the edits that an event announces.
func announcedEdits(e journal.Event) []workspace.Verdict {
	a, _ := history.Decode(e).Payload.(history.ApplyBegun)
	return a.Verdicts
}

// applyPartly leaves a workspace like a process that dies during a change: the
// first edits are applied, and the others have temporary files in their directories,
// or the first above that exists, the last one incomplete.
func applyPartly(dir string, e journal.Event, applied int) {
	home := Must(journal.FindHome(dir))
	defer home.Close()
	for i, v := range announcedEdits(e) {
		path := filepath.Join(dir, filepath.FromSlash(v.Path))
		if !v.After.Exists() {
			if i < applied {
				Must(0, os.Remove(path))
			}
			continue
		}
		content := Must(home.Get(v.After.Digest))
		base := filepath.Dir(path)
		for _, err := os.Stat(base); err != nil; _, err = os.Stat(base) {
			base = filepath.Dir(base)
		}
		temp := filepath.Join(base, tempName(v.Path))
		if i == len(announcedEdits(e))-1 {
			content = content[:len(content)/2]
		}
		Must(0, os.WriteFile(temp, content, 0o600))
		if i < applied {
			Must(0, os.WriteFile(temp, Must(home.Get(v.After.Digest)), 0o600))
			Must(0, os.Chmod(temp, wantedMode(path, v)))
			Must(0, os.MkdirAll(filepath.Dir(path), 0o755))
			Must(0, os.Rename(temp, path))
		}
	}
}

// wantedMode returns the permission bits that a file must get.
func wantedMode(path string, v workspace.Verdict) fs.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return fs.FileMode(v.After.Mode).Perm()
}

// tempName returns the name of a path's temporary file; see package workspace.
func tempName(path string) string {
	sum := sha256.Sum256([]byte(path))
	return ".hone~" + hex.EncodeToString(sum[:12])
}

// outsidePaths returns the files that the workspace's run considered changed by
// others.
func outsidePaths(dir string) []string {
	home := Must(journal.FindHome(dir))
	defer home.Close()
	var paths []string
	past := history.Read(Must(home.Read(Must(home.FindRun("last")))))
	Must(0, past.Facts().Fault)
	for _, o := range history.Of[history.Outside](past.Events()) {
		paths = append(paths, o.Paths...)
	}
	return paths
}
