package check

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// spoolMemory is how many bytes a spool keeps in memory before it uses a file.
const spoolMemory = 1 << 20

// spool stores a stream, in memory while it is small, then in a temporary file.
// reader reports an error of storing.
type spool struct {
	max    int64 // bytes that are stored; 0 means no limit
	size   int64 // bytes that were written, stored or not
	memory bytes.Buffer
	file   *os.File // nil while all is in memory
	named  bool     // the system removes no open file
	err    error
}

func (s *spool) Write(p []byte) (int, error) {
	n := len(p)
	if s.size += int64(n); s.max > 0 && s.size > s.max {
		p = p[:max(0, int64(n)-(s.size-s.max))]
	}
	if s.file == nil && s.memory.Len()+len(p) <= spoolMemory {
		s.memory.Write(p)
		return n, nil
	}
	if s.err == nil && s.file == nil {
		if s.file, s.err = os.CreateTemp("", "hone-output-*"); s.err == nil {
			s.named = os.Remove(s.file.Name()) != nil // a file without a name does not outlive the process
			_, s.err = s.memory.WriteTo(s.file)
		}
	}
	if s.err == nil {
		_, s.err = s.file.Write(p)
	}
	return n, nil
}

func (s *spool) reader() (io.Reader, error) {
	if s.err != nil || s.file == nil {
		return bytes.NewReader(s.memory.Bytes()), s.err
	}
	_, err := s.file.Seek(0, io.SeekStart)
	return s.file, err
}

func (s *spool) remove() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if s.named {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	return err
}
