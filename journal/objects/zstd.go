package objects

import (
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	minCompressed = 256
	// window is how far back the compression looks, and so the memory that reading takes,
	// except with a dictionary.
	window = 1 << 20
	// maxNext limits a dictionary together with what it compresses, and so that memory.
	maxNext = 256 << 20
	// smallNext is how long both are at most for the tables of the fastest level, which are a sixteenth of those of the better one.
	smallNext = 64 << 10
	// dictionary is the number of every dictionary in its frames.
	dictionary = 1
)

// The caller holds the mutex. The level is the fastest, because the commands of a run wait
// for it. There is no checksum: an object has its digest.
func (p *Pack) smallest(b []byte) (kind, []byte, error) {
	if p.codec == nil {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
		if err != nil {
			return 0, nil, err
		}
		p.codec = e
	}
	if len(b) >= minCompressed {
		if z := p.codec.EncodeAll(b, make([]byte, 0, len(b)/2)); len(z) <= len(b)-len(b)/8 {
			return compressed, z, nil
		}
	}
	return plain, b, nil
}

// nextEncoder compresses with a base of the pack as the dictionary.
type nextEncoder struct {
	base    *place // nil before the first use
	text    []byte
	window  int
	encoder *zstd.Encoder
}

// A text that its dictionary does not make half as long as the dictionary is the next one.
func (p *Pack) asNext(b []byte) (kind, []byte, error) {
	at := p.known.base
	if at != nil && at.size+int64(len(b)) <= maxNext {
		z, err := p.next.encode(p.store, at, b)
		if err != nil || int64(len(z)) <= at.stored/2 {
			return next, z, err
		}
	}
	_, _, err := p.smallest(nil)
	if err != nil {
		return 0, nil, err
	}
	return base, p.codec.EncodeAll(b, nil), nil
}

// The window reaches from the end of what is compressed to the beginning of the dictionary. A better level finds what is
// equal in a dictionary that is longer than its tables; to make these takes longer than to compress a small text.
func (n *nextEncoder) encode(s *Store, at *place, b []byte) (z []byte, err error) {
	if n.base != at {
		if n.text, err = s.read(*at); err != nil {
			return nil, err
		}
		n.base, n.window = at, 0
	}
	if needed := len(n.text) + len(b); needed > n.window {
		level := zstd.SpeedFastest
		for n.window = smallNext; n.window < needed; {
			n.window *= 2
			level = zstd.SpeedBetterCompression
		}
		if n.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(n.window), zstd.WithEncoderCRC(false), zstd.WithEncoderDictRaw(dictionary, n.text)); err != nil {
			return nil, err
		}
	}
	return n.encoder.EncodeAll(b, nil), nil
}

func (s *Store) read(at place) ([]byte, error) {
	o, err := s.open(at)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	return io.ReadAll(o)
}

// nextDecoder keeps the last dictionary: most texts are read one after the other.
type nextDecoder struct {
	mu      sync.Mutex
	base    *place
	decoder *zstd.Decoder
}

func (n *nextDecoder) decode(s *Store, at place, from io.Reader) ([]byte, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.base != at.base {
		text, err := s.read(*at.base)
		if err != nil {
			return nil, err
		}
		if n.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderDictRaw(dictionary, text),
			zstd.WithDecoderMaxMemory(maxNext), zstd.WithDecoderMaxWindow(2*maxNext)); err != nil {
			return nil, err
		}
		n.base = at.base
	}
	z, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	var h zstd.Header
	if err := h.Decode(z); err != nil || at.size > maxNext || h.HasFCS && h.FrameContentSize != uint64(at.size) {
		return nil, &damagedError{errors.New("its length is not the recorded one")}
	}
	b, err := n.decoder.DecodeAll(z, make([]byte, 0, at.size))
	if err != nil {
		err = &damagedError{err}
	}
	return b, err
}
