package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"sync"
)

const ballastFile = "ballast"

type ballast struct {
	mu   sync.Mutex
	size int64
}

// HoldSpace holds at least size bytes of the disk, so that what must be stored later can be
// stored even if another program fills the disk meanwhile; see [Home.ReleaseSpace]. It does
// nothing if that many are held already. [Home.Close] releases them.
func (h *Home) HoldSpace(size int64) error {
	h.ballast.mu.Lock()
	defer h.ballast.mu.Unlock()
	if h.ballast.size >= size {
		return nil
	}
	err := h.removeBallast()
	var f *os.File
	if err == nil {
		f, err = h.in.Root.OpenFile(ballastFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err == nil {
		// Where it cannot be preallocated, the bytes are random, so that no file system can compress them.
		if err = preallocate(f, size); errors.Is(err, errors.ErrUnsupported) {
			_, err = io.CopyN(f, rand.NewChaCha8([32]byte{}), size)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, h.removeBallast())
		}
	}
	if err != nil {
		return fmt.Errorf("hold space for what must be recorded: %w", err)
	}
	h.ballast.size = size
	return nil
}

// ReleaseSpace releases the space that this process holds.
func (h *Home) ReleaseSpace() error {
	h.ballast.mu.Lock()
	defer h.ballast.mu.Unlock()
	if h.ballast.size == 0 {
		return nil
	}
	return h.removeBallast()
}

// The caller holds the lock.
func (h *Home) removeBallast() error {
	h.ballast.size = 0
	if err := h.in.Root.Remove(ballastFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
