package objects_test

import (
	"bytes"
	"errors"
	"os"
	"syscall"
	"testing"

	"hone/internal/disktest"
)

// TestFullDisk stores until a small file system is full. What was stored stays, and the next
// object is stored once there is space.
func TestFullDisk(t *testing.T) {
	for _, size := range []int{1000, 3 << 20} {
		s := open(t, disktest.Small(t, "8m"))
		room := s.in.At("room")
		must(0, os.WriteFile(room, make([]byte, 4<<20), 0o600))
		p := s.Pack("a")
		var contents [][]byte
		var err error
		for n := 0; err == nil; n++ {
			b := disktest.Noise(size, uint64(n))
			if _, _, err = p.Add(bytes.NewReader(b)); err == nil {
				contents = append(contents, b)
			}
		}
		if !errors.Is(err, syscall.ENOSPC) || len(contents) == 0 {
			t.Fatalf("object %d: %v", len(contents), err)
		}
		holds(t, open(t, s.in.Path).Store, contents...)
		must(0, os.Remove(room))
		contents = append(contents, disktest.Noise(size, 1e6))
		if _, _, err := p.Add(bytes.NewReader(contents[len(contents)-1])); err != nil {
			t.Fatal(err)
		}
		must(0, errors.Join(p.Sync(), p.Close()))
		holds(t, open(t, s.in.Path).Store, contents...)
	}
}
