package objects

import (
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	minCompressed = 256
	// window is how far back the compression looks, and so the memory that reading
	// takes.
	window           = 1 << 20
	compressedSuffix = ".zst"
)

type codec struct {
	once    sync.Once
	encoder *zstd.Encoder
}

// Concurrent calls are safe.
func (c *codec) compress(b []byte) []byte {
	c.once.Do(func() { c.encoder = newEncoder() })
	if z := c.encoder.EncodeAll(b, make([]byte, 0, len(b)/2)); len(z) <= len(b)-len(b)/8 {
		return z
	}
	return nil
}

// The level is the fastest, because the commands of a run wait for it. There is no checksum: an object has its digest.
func newEncoder() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
}

// The reader never returns more than size bytes, and takes little memory, whatever the frame contains.
func decompress(from io.Reader, size int64) (io.ReadCloser, error) {
	d, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, err
	}
	return &decompressor{decoder: d, from: io.LimitReader(d, size)}, nil
}

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

type damagedError struct{ cause error }

func (e *damagedError) Error() string { return e.cause.Error() }
func (e *damagedError) Unwrap() error { return e.cause }

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
