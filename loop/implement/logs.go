package implement

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"hone/internal/artifact"
)

// The files that the loop writes for the user (the seed's "Logging"). It never reads
// them.
const (
	LogsName   = "logs"
	OutputName = "llm-user-output.txt"
)

// The name is the local time when the run started, which begins its id, with -2, -3 … if that exists (ruling C9). Links are not followed.
func folder(dir, run string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := root.Mkdir(LogsName, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("create the directory of the logs: %w", err)
	}
	if info, err := root.Lstat(LogsName); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory: move it away", LogsName)
	}
	name := LogsName + "/" + run[:strings.LastIndexByte(run, '-')]
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

// The file had the size before. What an interrupted process already appended is skipped, so that it can run twice.
func appendOnce(dir, name, text string, before int64) error {
	f, err := artifact.OpenAppend(dir, name)
	if err == nil {
		b := make([]byte, len(text))
		n, _ := f.ReadAt(b, before)
		_, err = f.WriteString(strings.TrimPrefix(text, string(b[:n]))) // all of it if the file contains something else
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
