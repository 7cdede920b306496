package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"hone/internal/crashtest"
	"hone/workspace/secret"
)

// The next process does not read files again in which this one found no secret,
// but finds the secret in one that changed.
func TestCleanFilesAreRecalled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the change time is unknown")
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("f%d", i)] = "x"
	}
	root := crashtest.Workspace(t, files)
	crashtest.AwaitOldStamps()
	search := func() (values int, news bool) {
		g := secret.NewGuard(nil)
		_, found, err := withSecretsOf(t.Context(), root, g, os.Getenv, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, key, err := cleanList(root)
		if err != nil {
			t.Fatal(err)
		}
		return len(found.Files), g.CleanList(key) != nil
	}
	if n, news := search(); n != 0 || !news {
		t.Fatalf("first: %d secret files, something to remember: %v", n, news)
	}
	crashtest.WriteFile(root, "f7", "ghp_"+"q7Zt2LmXw9KcVb4NfR8sHj3DyGp6TaEu1QoW")
	if n, news := search(); n != 1 || news {
		t.Errorf("later: %d secret files, something to remember: %v", n, news)
	}
	file, _, err := cleanList(root)
	if err != nil {
		t.Fatal(err)
	}
	crashtest.WriteFile(filepath.Dir(file), filepath.Base(file), "damaged, because the system crashed while it was written")
	crashtest.WriteFile(filepath.Dir(file), "old", "that of a workspace that was not used for long")
	long := time.Now().Add(-2 * maxCleanAge)
	if err := os.Chtimes(filepath.Join(filepath.Dir(file), "old"), long, long); err != nil {
		t.Fatal(err)
	}
	if n, news := search(); n != 1 || !news {
		t.Errorf("after damage: %d secret files, something to remember: %v", n, news)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), "old")); err == nil {
		t.Error("a list that was not written for long is left")
	}
}
