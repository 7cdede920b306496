package gemini

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"hone/model"
)

// events calls do with the data of each server-sent event until the stream
// ends. Lines may be of any length; the exchange bounds the whole.
func events(body io.Reader, do func(data []byte) error) error {
	lines := bufio.NewReader(body)
	var data []byte
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		ended := err == io.EOF
		line = bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = bytes.TrimSpace(append(append(data, '\n'), value...))
		} else if stray(line) {
			return strayError(line, lines)
		}
		if ended && len(data) > 0 && !json.Valid(data) {
			return &model.Error{Kind: model.Cut, Message: "the stream ended within an event"}
		}
		if len(data) > 0 && (ended || len(line) == 0) {
			if err := do(data); err != nil {
				return err
			}
			data = data[:0]
		}
		if ended {
			return nil
		}
	}
}

// stray reports whether a line is of no kind that event streams have.
func stray(line []byte) bool {
	name, _, _ := bytes.Cut(line, []byte(":"))
	switch string(name) {
	case "", "data", "event", "id", "retry":
		return false
	}
	return true
}

// strayError reads what stands in a stream without being an event: the API
// is known to put an error's body there as it is.
func strayError(line []byte, rest io.Reader) error {
	more, err := io.ReadAll(rest)
	if err != nil {
		return err
	}
	if e := errorBody(append(append(line, '\n'), more...)); e != nil {
		return e.fault()
	}
	return errors.New("a line is not of an event stream")
}

// errorBody is the error that an answer consists of, alone or in a list; nil
// if it is none.
func errorBody(text []byte) *apiError {
	var list []chunk
	if json.Unmarshal(text, &list) != nil {
		list = make([]chunk, 1)
		if json.Unmarshal(text, &list[0]) != nil {
			return nil
		}
	}
	for _, c := range list {
		if c.Error != nil {
			return c.Error
		}
	}
	return nil
}
