package secret

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"
)

// FileState identifies the contents of a file without reading them: a change of
// the contents changes the state, unless it comes within the resolution of the
// file system's clock after Changed.
type FileState struct {
	Path          string // relative to the root
	Device, Inode uint64
	Size          int64
	Modified      int64 // in nanoseconds since 1970
	Changed       int64 // last change of the inode in nanoseconds since 1970; 0 if unknown
}

// clockStep is the longest time between two steps of a file system's clock.
const clockStep = 2 * time.Second

// isReliable reports whether a change after a time would show in the state.
func (s FileState) isReliable(at time.Time) bool {
	return s.Changed != 0 && s.Changed < at.Add(-clockStep).UnixNano()
}

func (s FileState) digest() cleanDigest {
	b := make([]byte, 0, 128)
	for _, n := range []uint64{s.Device, s.Inode, uint64(s.Size), uint64(s.Modified), uint64(s.Changed)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(append(b, s.Path...))
	return cleanDigest(sum[:16])
}

type cleanDigest [16]byte

// cleanFiles is the set of files whose contents are not withheld, whatever the
// Secrets of the guard are. Several goroutines may use it at once.
type cleanFiles struct {
	mu    sync.Mutex
	list  map[cleanDigest]bool // whether this process used it
	added int                  // how many this process added
}

// IsClean reports whether MarkClean was called for a file in the same state by
// this guard, or by one that WithSecrets derived from it.
func (g *Guard) IsClean(s FileState) bool {
	if g == nil || g.clean == nil {
		return false
	}
	d := s.digest()
	g.clean.mu.Lock()
	defer g.clean.mu.Unlock()
	used, ok := g.clean.list[d]
	if ok && !used {
		g.clean.list[d] = true
	}
	return ok
}

// MarkClean remembers that there is no secret in the contents of a file: Withheld
// gave no reason except [ValueReason], or they are not a text. They were read
// after the time at, and s is the state before that. MarkClean does nothing if a
// later change might not show in the state.
func (g *Guard) MarkClean(s FileState, at time.Time) {
	if g == nil || g.clean == nil || !s.isReliable(at) {
		return
	}
	d := s.digest()
	g.clean.mu.Lock()
	defer g.clean.mu.Unlock()
	g.clean.list[d] = true
	g.clean.added++
}

// CleanList returns the files for which MarkClean or IsClean was called, for
// another guard's AddClean. key authenticates the list. It is nil if the list
// would hardly differ from the one that was added: reading a few files again costs
// less than storing it.
func (g *Guard) CleanList(key []byte) []byte {
	if g == nil || g.clean == nil {
		return nil
	}
	g.clean.mu.Lock()
	defer g.clean.mu.Unlock()
	var list []byte
	for d, used := range g.clean.list {
		if used {
			list = append(list, d[:]...)
		}
	}
	all, used := len(g.clean.list), len(list)/len(cleanDigest{})
	if g.clean.added <= 16+all/64 && used >= all/2 {
		return nil
	}
	return append(g.sealOf(key, list), list...)
}

// AddClean adds what CleanList returned to the files that the guard remembers. It
// ignores a list that was damaged, or made with another key or by a guard with
// other Known values or send patterns: that guard judged otherwise.
func (g *Guard) AddClean(key, sealed []byte) {
	if g == nil || g.clean == nil || len(sealed) < sha256.Size {
		return
	}
	list := sealed[sha256.Size:]
	if !hmac.Equal(sealed[:sha256.Size], g.sealOf(key, list)) {
		return
	}
	g.clean.mu.Lock()
	defer g.clean.mu.Unlock()
	for d := range slices.Chunk(list, len(cleanDigest{})) {
		g.clean.list[cleanDigest(d)] = false
	}
}

// sealOf authenticates a list, with everything of the guard that its judgement
// depends on.
func (g *Guard) sealOf(key, list []byte) []byte {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%q %q\n", g.Known, g.patterns)
	mac.Write(list)
	return mac.Sum(nil)
}
