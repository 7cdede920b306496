package attempts

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"hone/history"
	"hone/journal"
)

// An attempt that was killed before it began its journal has used nothing of its loan. If its
// journal cannot be read, the loan counts in full.
func TestSpent(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	home, err := journal.OpenHome(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	lock, err := home.Lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	j, err := home.Create(home.NewRun())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	past := history.Follow(j)
	if _, err := j.Append(journal.Entry{Type: history.TypeReserve, Payload: history.Reserve{Role: fmt.Sprintf(rolePattern, 2), Tokens: 1000}}); err != nil {
		t.Fatal(err)
	}
	if spent := Spent(home, j.Run(), past); spent.Tokens != 0 {
		t.Errorf("%d tokens before the attempt began", spent.Tokens)
	}
	p, err := placeOf(dir, j.Run())
	if err := errors.Join(err, os.MkdirAll(p.dir(2), 0o700), os.WriteFile(p.dir(2)+"/"+journal.HomeName, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if spent := Spent(home, j.Run(), past); spent.Tokens != 1000 {
		t.Errorf("%d tokens of an attempt whose journal cannot be read", spent.Tokens)
	}
}
