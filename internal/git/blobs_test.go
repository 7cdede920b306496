package git

import (
	"maps"
	"slices"
	"testing"
)

func TestBlobs(t *testing.T) {
	g := isolatedGit(t)
	dir := repository(t, "a.txt", "one\n", "d/b c.txt", "")
	r := open(t, g, dir)
	git(t, dir, "commit", "-qm", "first", "--allow-empty")
	head, err := r.HeadCommit(t.Context())
	if err != nil || head == "" {
		t.Fatalf("head %q, %v", head, err)
	}
	write(t, dir, "a.txt", "changed\n", "untracked", "x")
	blobs, err := r.Blobs(t.Context(), head)
	if err != nil {
		t.Fatal(err)
	}
	if paths := slices.Sorted(maps.Keys(blobs)); !slices.Equal(paths, []string{"a.txt", "d/b c.txt"}) {
		t.Errorf("paths: %q", paths)
	}
	if !IsBlob(blobs["a.txt"], []byte("one\n")) || IsBlob(blobs["a.txt"], []byte("changed\n")) || !IsBlob(blobs["d/b c.txt"], nil) {
		t.Errorf("blobs: %v", blobs)
	}
	if !IsBlob("473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813", nil) {
		t.Error("the id of an empty file in a repository with SHA-256 is not known")
	}
	for _, bad := range []string{"", "HEAD", "--all", "0000000000000000000000000000000000000000"} {
		if _, err := r.Blobs(t.Context(), bad); err == nil {
			t.Errorf("%q is a commit", bad)
		}
	}
	empty := open(t, g, initialize(t, g, newDir(t)).root)
	if head, err := empty.HeadCommit(t.Context()); err != nil || head != "" {
		t.Errorf("without a commit: %q, %v", head, err)
	}
}
