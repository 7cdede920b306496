package implement

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"hone/internal/artifact"
)

// The files that the loop writes for people (the seed's "Logging"). It never
// reads its own state back from them.
const (
	LogsName   = "logs"
	OutputName = "llm-user-output.txt"
)

// folder makes the run's own folder below logs/, named after the local time,
// with -2, -3 … where that exists (ruling C9), and returns its path. Links on
// the way are not followed.
func folder(root *os.Root, now time.Time) (string, error) {
	if err := root.Mkdir(LogsName, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make the folder of the logs: %w", err)
	}
	if info, err := root.Lstat(LogsName); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is no folder: move it away", LogsName)
	}
	name := LogsName + "/" + now.Format("20060102-150405")
	for n := 1; ; n++ {
		at := name
		if n > 1 {
			at = fmt.Sprintf("%s-%d", name, n)
		}
		err := root.Mkdir(at, 0o755)
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return at, err
		}
	}
}

// Write puts a text, read to its end, into a file below a folder, in place of what is there. A
// link in its place, or on the way, is not followed out of the folder.
func Write(dir, name string, content io.Reader) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer root.Close()
	return artifact.Write(root, name, content)
}

// appendOnce adds a text to a file that had a size before, but for what of it
// a process added already that died then: so it can be done twice.
func appendOnce(root *os.Root, name, text string, before int64) error {
	info, err := root.Lstat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file: move it away", name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("write %s: %w", name, err)
	}
	text = strings.TrimPrefix(text, standing(root, name, before, text))
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// standing is how much of a text stands in a file from an offset to its end;
// empty where something else does.
func standing(root *os.Root, name string, at int64, text string) string {
	f, err := root.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, len(text))
	n, _ := f.ReadAt(b, at)
	if !strings.HasPrefix(text, string(b[:n])) {
		return ""
	}
	return string(b[:n])
}

// sizeOf is a file's size; 0 where there is none.
func sizeOf(root *os.Root, name string) (int64, error) {
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
