package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"hone/model"
)

// jsonReply is either one attempt or a list of attempts.
type jsonReply struct {
	When     string        `json:"when"`
	Attempts []jsonAttempt `json:"attempts"`
	jsonAttempt
}

type jsonAttempt struct {
	Text   string       `json:"text"`
	Calls  []jsonCall   `json:"calls"`
	Finish string       `json:"finish"`
	Detail string       `json:"detail"`
	Usage  *model.Usage `json:"usage"`
	Error  *jsonError   `json:"error"`
	Delay  duration     `json:"delay"`
}

// jsonCall has arguments that are an object, or a string with any text.
type jsonCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type jsonError struct {
	Kind    string   `json:"kind"`
	Status  int      `json:"status"`
	After   duration `json:"after"`
	Message string   `json:"message"`
	Hint    string   `json:"hint"`
}

// duration is a string such as "1.5s" in JSON.
type duration time.Duration

func (d *duration) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return errors.New(`a duration must be a string such as "1.5s"`)
	}
	v, err := time.ParseDuration(s)
	*d = duration(v)
	return err
}

func parseJSON(name string, data []byte) ([]Reply, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	// Decoding element by element gives errors the line of their reply.
	if err := enterList(d); err != nil {
		return nil, jsonProblem(name, data, d, err)
	}
	var replies []Reply
	for d.More() {
		var j jsonReply
		if err := d.Decode(&j); err != nil {
			return nil, jsonProblem(name, data, d, err)
		}
		r, err := j.reply()
		if err == nil {
			err = r.check()
		}
		if err != nil {
			return nil, jsonProblem(name, data, d, err)
		}
		replies = append(replies, r)
	}
	if err := leaveList(d, data); err != nil {
		return nil, jsonProblem(name, data, d, err)
	}
	if len(replies) == 0 {
		return nil, problem(name, 1, `no replies; write {"replies": [{"text": "…"}]}`)
	}
	return replies, nil
}

func enterList(d *json.Decoder) error {
	token, err := d.Token()
	if err != nil || token == json.Delim('[') {
		return err
	}
	for _, want := range []json.Token{"replies", json.Delim('[')} {
		token, err := d.Token()
		if err != nil {
			return err
		}
		if token != want {
			return fmt.Errorf(`found %v, want %v; write {"replies": [{"text": "…"}]}`, token, want)
		}
	}
	return nil
}

func leaveList(d *json.Decoder, data []byte) error {
	closing := []json.Token{json.Delim(']')}
	if bytes.TrimSpace(data)[0] == '{' {
		closing = append(closing, json.Delim('}'))
	}
	for _, want := range closing {
		token, err := d.Token()
		if err != nil {
			return err
		}
		if token != want {
			return fmt.Errorf("found %v, want %v", token, want)
		}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the end of the script; remove it")
	}
	return nil
}

func jsonProblem(name string, data []byte, d *json.Decoder, err error) error {
	at := d.InputOffset()
	if e := (*json.SyntaxError)(nil); errors.As(err, &e) {
		at = e.Offset
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		at, err = int64(len(data)), errors.New("the script ends early; close its brackets")
	}
	line := 1 + bytes.Count(data[:min(max(0, at), int64(len(data)))], []byte("\n"))
	return problem(name, line, "%v", err)
}

func (j jsonReply) reply() (Reply, error) {
	r := Reply{When: j.When}
	list := j.Attempts
	if list == nil {
		list = []jsonAttempt{j.jsonAttempt}
	} else if !reflect.ValueOf(j.jsonAttempt).IsZero() {
		return r, errors.New("a reply cannot have attempts and other keys; move the other keys into attempts")
	}
	for _, ja := range list {
		a, err := ja.attempt()
		if err != nil {
			return r, err
		}
		r.Attempts = append(r.Attempts, a)
	}
	return r, nil
}

func (j jsonAttempt) attempt() (Attempt, error) {
	a := Attempt{Text: j.Text, Detail: j.Detail, Usage: j.Usage, Delay: time.Duration(j.Delay)}
	for _, c := range j.Calls {
		a.Calls = append(a.Calls, Call{c.ID, c.Name, arguments(c.Args)})
	}
	var err error
	if j.Finish != "" {
		a.Finish, err = parseFinish(j.Finish)
	}
	if j.Error != nil && err == nil {
		a.Error, err = j.Error.toError()
	}
	return a, err
}

func (j jsonError) toError() (*model.Error, error) {
	kind, err := parseKind(j.Kind)
	return &model.Error{
		Kind: kind, Status: j.Status, RetryAfter: time.Duration(j.After), Message: j.Message, Hint: j.Hint,
	}, err
}

func arguments(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "{}"
	}
	var s string
	if json.Unmarshal(raw, &s) == nil && raw[0] == '"' {
		return s
	}
	return string(raw)
}
