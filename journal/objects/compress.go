package objects

import (
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	// minCompressed is how many bytes an object must have to be compressed.
	minCompressed = 256
	// window is how far back the compression looks, and so the memory that reading
	// takes.
	window = 1 << 20
	// compressedSuffix is that of a compressed object in a file of its own.
	compressedSuffix = ".zst"
)

// codec compresses objects. The zero value is ready to use.
type codec struct {
	once    sync.Once
	encoder *zstd.Encoder
}

// compress returns an object in one zstd frame that states its length, or nil if that
// saves less than an eighth of it. Concurrent calls are safe.
func (c *codec) compress(b []byte) []byte {
	c.once.Do(func() { c.encoder = newEncoder() })
	if z := c.encoder.EncodeAll(b, make([]byte, 0, len(b)/2)); len(z) <= len(b)-len(b)/8 {
		return z
	}
	return nil
}

// newEncoder returns an encoder at the fastest level, because the commands of a run
// wait for it. It adds no checksum: an object has its digest.
func newEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
}

// decompress returns a reader of an object that has size bytes. It never returns more
// than that, and takes little memory, whatever the frame contains.
func decompress(from io.Reader, size int64) (io.ReadCloser, error) {
	d, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, err
	}
	return &decompressor{decoder: d, from: io.LimitReader(d, size)}, nil
}

// decompressor reads a compressed object.
type decompressor struct {
	decoder *zstd.Decoder
	from    io.Reader
}

func (d *decompressor) Read(b []byte) (int, error) {
	n, err := d.from.Read(b)
	if err != nil && err != io.EOF {
		err = &damagedError{err}
	}
	return n, err
}

func (d *decompressor) Close() error {
	d.decoder.Close()
	return nil
}

// damagedError describes why an object is damaged.
type damagedError struct{ cause error }

func (e *damagedError) Error() string { return e.cause.Error() }
func (e *damagedError) Unwrap() error { return e.cause }

// recordedSize returns the length of an object, which its frame states at the start.
func recordedSize(frame io.ReaderAt) (int64, error) {
	start := make([]byte, zstd.HeaderMaxSize)
	n, err := frame.ReadAt(start, 0)
	if err != nil && err != io.EOF {
		return 0, err
	}
	var h zstd.Header
	if err := h.Decode(start[:n]); err != nil {
		return 0, &damagedError{err}
	}
	if !h.HasFCS || h.FrameContentSize > 1<<62 {
		return 0, &damagedError{fmt.Errorf("it states no length")}
	}
	return int64(h.FrameContentSize), nil
}
