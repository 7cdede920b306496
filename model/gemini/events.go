package gemini

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"hone/model"
)

// forEachEvent calls do with the data of each server-sent event until the
// stream ends. Lines may have any length; the exchange limits the body.
func forEachEvent(body io.Reader, do func(data []byte) error) error {
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
		} else if !isEventLine(line) {
			return outsideEventError(line, lines)
		}
		if ended && len(data) > 0 && !json.Valid(data) {
			return &model.Error{Kind: model.Cut, Message: "the stream ended inside an event"}
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

// isEventLine reports whether an event stream may contain the line.
func isEventLine(line []byte) bool {
	name, _, _ := bytes.Cut(line, []byte(":"))
	switch string(name) {
	case "", "data", "event", "id", "retry":
		return true
	}
	return false
}

// outsideEventError returns the error for text outside of events. The API is
// known to write an error's JSON body into a stream without an event.
func outsideEventError(line []byte, rest io.Reader) error {
	more, err := io.ReadAll(rest)
	if err != nil {
		return err
	}
	if e := errorBody(append(append(line, '\n'), more...)); e != nil {
		return e.fault()
	}
	return errors.New("the stream contains text outside of events")
}

// errorBody returns the error in a body that consists of an error response,
// alone or in a list; nil for any other body.
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
