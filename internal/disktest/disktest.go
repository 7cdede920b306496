// Package disktest has what tests of a full disk need: a small file system, and contents
// that fill it.
package disktest

import (
	"encoding/binary"
	"math/rand/v2"
)

// Noise returns bytes that cannot be compressed, the same for the same seed.
func Noise(size int, seed uint64) []byte {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte(binary.BigEndian.AppendUint64(make([]byte, 24, 32), seed))).Read(b)
	return b
}
