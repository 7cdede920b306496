package implement

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
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

// response returns the raw response of a provider as one JSON object, which is what
// code-commit logs. It joins the chunks of a stream of Gemini to the response that a
// request without a stream gets, and returns everything else unchanged.
func response(raw json.RawMessage) json.RawMessage {
	var chunks []map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&chunks) != nil {
		return raw
	}
	whole, first, content, parts := map[string]any{}, map[string]any{}, map[string]any{}, []any{}
	found := false
	for _, chunk := range chunks {
		maps.Copy(whole, chunk)
		candidates, _ := chunk["candidates"].([]any)
		if len(candidates) == 0 {
			continue
		}
		found = true
		candidate, _ := candidates[0].(map[string]any)
		maps.Copy(first, candidate)
		more, _ := candidate["content"].(map[string]any)
		maps.Copy(content, more)
		list, _ := more["parts"].([]any)
		for _, p := range list {
			parts = appendPart(parts, p)
		}
	}
	if !found {
		return raw
	}
	content["parts"], first["content"], whole["candidates"] = parts, content, []any{first}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(whole) != nil {
		return raw
	}
	return bytes.TrimSpace(b.Bytes())
}

// Texts that differ in nothing else are joined.
func appendPart(parts []any, part any) []any {
	next, _ := part.(map[string]any)
	text, isText := next["text"].(string)
	if n := len(parts); n > 0 && isText {
		last, _ := parts[n-1].(map[string]any)
		start, isText := last["text"].(string)
		same := maps.Clone(next)
		same["text"] = start
		if isText && reflect.DeepEqual(last, same) {
			same["text"] = start + text
			parts[n-1] = same
			return parts
		}
	}
	return append(parts, part)
}
