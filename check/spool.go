package check

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// spoolMemory is how much of a stream a spool holds before it takes a file.
const spoolMemory = 1 << 20

// spool keeps the whole of a stream, in memory while it is small, else in a
// temporary file. A failure to keep it shows when it is read.
type spool struct {
	held bytes.Buffer
	file *os.File // nil while all is held
	err  error
}

func (s *spool) Write(p []byte) (int, error) {
	if s.err != nil {
		return len(p), nil
	}
	if s.file == nil && s.held.Len()+len(p) <= spoolMemory {
		return s.held.Write(p)
	}
	if s.file == nil {
		if s.file, s.err = os.CreateTemp("", "hone-output-*"); s.err != nil {
			return len(p), nil
		}
		_, s.err = s.held.WriteTo(s.file)
	}
	if s.err == nil {
		_, s.err = s.file.Write(p)
	}
	return len(p), nil
}

// reader reads the stream from its beginning.
func (s *spool) reader() (io.Reader, error) {
	if s.err != nil || s.file == nil {
		return bytes.NewReader(s.held.Bytes()), s.err
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return s.file, err
}

// remove gives up what was kept.
func (s *spool) remove() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
