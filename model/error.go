package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind classifies a failed attempt.
type Kind string

// The kinds of failure that a retry cannot fix.
const (
	Auth    Kind = "auth"     // 401, 403: the key is missing, wrong or lacks permission
	Invalid Kind = "invalid"  // 400, 404, 422: the server rejects the request
	TooLong Kind = "too long" // the request does not fit the model's context
	Quota   Kind = "quota"    // 402, or 400, 403 and 429 for an account without credit
	// OutputLimit means that the request asks for more output than the model gives, or than
	// its context has room for.
	OutputLimit Kind = "output limit"
	NoModel     Kind = "unknown model" // the server does not have the model
	Failed      Kind = "failed"        // an agent's session failed; the same session is never repeated
)

// The kinds of failure after which a retry may succeed.
const (
	RateLimited Kind = "rate limited" // 429; wait for Error.RetryAfter
	Overloaded  Kind = "overloaded"   // 408, 409, 424, 425, 499, 5xx; wait for Error.RetryAfter
	Unreachable Kind = "unreachable"  // no connection
	Cut         Kind = "cut"          // the stream or body ended early
	Garbage     Kind = "garbage"      // the response does not follow the protocol
	Silent      Kind = "silent"       // the idle or total timeout expired
)

// The kinds of failure that stand for a reply; see [Error.Reply].
const (
	Blocked   Kind = "filtered"  // the provider filtered the reply, or the request
	Malformed Kind = "bad reply" // the server cannot read what the model wrote
)

// Error describes one failed attempt to the user. It never contains a key, a
// header or the text of a request.
type Error struct {
	Kind Kind
	// Status is the HTTP status; 0 if there was no response.
	Status int
	// Streamed means that the error arrived inside a response that had started, so
	// that something may have been generated, whatever its status says.
	Streamed bool
	// Message is one line: the provider's message if it sent one.
	Message string
	// RetryAfter is the minimum wait before another attempt (Retry-After or the
	// provider's own field); 0 leaves the wait to the caller.
	RetryAfter time.Duration
	// Usage is what the provider reported as used before the failure. If it
	// is nil, nothing was reported and the caller must assume the maximum.
	Usage *Usage
	// Hint is what the user can do before another try, such as "set X to a
	// key": a clause in the imperative, without a command line of hone. Empty
	// means that nothing is known to help.
	Hint string
	// Alternative is what the user can do instead of another try: a clause like
	// Hint. Empty means that there is nothing.
	Alternative string
}

func (e *Error) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("%s: %s", e.Kind, e.Message)
	}
	return fmt.Sprintf("%s (HTTP %d): %s", e.Kind, e.Status, e.Message)
}

// Temporary reports whether another attempt may succeed.
func (e *Error) Temporary() bool {
	switch e.Kind {
	case Auth, Invalid, TooLong, OutputLimit, Quota, NoModel, Failed, Blocked, Malformed:
		return false
	}
	return true
}

// Reply returns the reply that a failure stands for, which has no parts: some servers report
// as an error that a reply was filtered, or that the model wrote a call that they cannot read.
// Another attempt may succeed, but the model has used its turn (rulings G3 and G19). ok is
// false for any other failure.
func (e *Error) Reply() (reply Reply, ok bool) {
	switch e.Kind {
	case Blocked:
		return Reply{Finish: Filtered, Detail: e.Message}, true
	case Malformed:
		return Reply{Finish: Other, Detail: e.Message}, true
	}
	return Reply{}, false
}

// Rejected reports whether the attempt failed before anything was generated, so
// that no tokens were used (ruling G17): there was no connection, or the status is
// 503, 529 or 4xx. Some servers send 408 and 499 after they have started work, and
// other failures of a server (5xx) may follow work that is charged.
func (e *Error) Rejected() bool {
	switch {
	case e.Kind == Unreachable:
		return true
	case e.Streamed, e.Status == http.StatusRequestTimeout, e.Status == statusClientClosed:
		return false
	case e.Kind == Auth && e.Status == 0: // there was no key to send it with
		return true
	case e.Status == http.StatusServiceUnavailable, e.Status == statusOverloaded:
		return true
	case e.Status/100 == 2: // the body is nothing but an error
		return !e.Temporary() || e.Kind == RateLimited
	}
	return e.Status >= 400 && e.Status < 500
}

// Statuses that net/http does not name.
const (
	statusClientClosed = 499 // nginx, Google: the server believes that the client has gone
	statusOverloaded   = 529 // Anthropic
)

// errorBody is what an error says, in whatever form its server writes it.
type errorBody struct {
	texts  []string
	codes  []string // its codes, types and reasons
	status int      // a code that is an HTTP status of an error; 0 if there is none
	after  time.Duration
}

// maxNesting limits how deep an error may be wrapped: gateways put the bodies of other
// servers into theirs, also as text.
const maxNesting = 10

func readError(body []byte) *errorBody {
	e := new(errorBody)
	if bytes.HasPrefix(body, []byte("data:")) || bytes.HasPrefix(body, []byte("event:")) {
		f := Framer{Event: func(_ string, data []byte) { e.read(data, maxNesting) }}
		f.Write(body)
		f.End()
		return e
	}
	e.read(body, maxNesting)
	return e
}

func (e *errorBody) message() string { return strings.Join(slices.Compact(e.texts), ": ") }
func (e *errorBody) code() string    { return strings.Join(slices.Compact(e.codes), " ") }

func (e *errorBody) fault(status int, header http.Header) *Error {
	return statusError(status, max(retryAfter(header, time.Now()), e.after), e.message(), e.code())
}

// The members of an error, in the order in which their texts are joined.
var (
	textMembers = []string{"error", "message", "msg", "Message", "detail", "errors", "error_message", "error_msg", "errorMessage",
		"status_msg", "base_resp", "metadata", "raw"}
	codeMembers = []string{"code", "Code", "type", "__type", "status", "statusCode", "status_code", "error_code", "error_type", "reason", "param", "loc"}
	// Members that hold more codes, but no text for people.
	innerMembers = []string{"details", "innererror", "inner_error"}
)

// raw is a text, an object with members of an error, or a list of these.
func (e *errorBody) read(raw []byte, depth int) {
	raw = bytes.TrimSpace(raw)
	var fields map[string]json.RawMessage
	var list []json.RawMessage
	var text string
	switch {
	case depth == 0:
	case json.Unmarshal(raw, &fields) == nil:
		for _, name := range codeMembers {
			e.readCode(fields[name])
		}
		for _, name := range innerMembers {
			e.readInner(fields[name], depth-1)
		}
		for _, name := range textMembers {
			e.read(fields[name], depth-1)
		}
	case json.Unmarshal(raw, &list) == nil:
		if len(list) > 0 {
			e.read(list[0], depth-1)
		}
	case json.Unmarshal(raw, &text) == nil:
		if text = strings.TrimSpace(text); strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
			e.read([]byte(text), depth-1)
		} else if text != "" && !slices.Contains(e.texts, text) {
			e.texts = append(e.texts, text)
		}
	case !json.Valid(raw) && depth == maxNesting:
		if text = plainText(raw); text != "" {
			e.texts = append(e.texts, text)
		}
	}
}

// A code is a string, a number, or a list of them.
func (e *errorBody) readCode(raw json.RawMessage) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		for _, element := range list {
			e.readCode(element)
		}
		return
	}
	code := jsonString(raw)
	if n := strings.TrimSpace(string(raw)); code == "" && json.Unmarshal(raw, new(float64)) == nil {
		code = n
	}
	if code == "" {
		return
	}
	e.codes = append(e.codes, code)
	if n, err := strconv.Atoi(code); err == nil && 400 <= n && n < 600 && e.status == 0 {
		e.status = n
	}
}

// Google's RetryInfo asks for a delay.
func (e *errorBody) readInner(raw json.RawMessage, depth int) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	for _, element := range list {
		var fields map[string]json.RawMessage
		if depth == 0 || json.Unmarshal(element, &fields) != nil {
			continue
		}
		for _, name := range codeMembers {
			e.readCode(fields[name])
		}
		if after, err := time.ParseDuration(jsonString(fields["retryDelay"])); err == nil {
			e.after = max(e.after, min(after, maxAfter))
		}
		for _, name := range innerMembers {
			e.readInner(fields[name], depth-1)
		}
	}
}

// replyMembers are those that only replies have, on any wire.
var replyMembers = []string{"choices", "output", "content", "candidates", "message_start", "delta", "response", "item", "usageMetadata"}

// find reads an event, and reports whether it is an error: by its name or type, by a
// member that says so, or, for a response that is not a stream or that has a code, because
// it has a message and nothing of a reply. Empty members say nothing: some servers send all
// of them.
func (e *errorBody) find(name string, data []byte, whole bool) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		if name == "error" {
			e.read(data, maxNesting)
		}
		return name == "error"
	}
	kind := jsonString(fields["type"])
	if kind == "response.failed" || jsonString(fields["object"]) == "response" && isFilled(fields["status"]) {
		return false // the wire reads the usage too
	}
	named := name == "error" || kind == "error" || jsonString(fields["object"]) == "error" ||
		isFilled(fields["error"]) || isFilled(fields["error_message"]) || hasStatus(fields["base_resp"])
	hasReply := slices.ContainsFunc(replyMembers, func(m string) bool { return isFilled(fields[m]) })
	coded := whole || isFilled(fields["code"]) || isFilled(fields["status"])
	if !named && (hasReply || kind != "" || !coded) {
		return false
	}
	e.read(data, maxNesting)
	return named || e.message() != ""
}

// MiniMax's base_resp has a status.
func hasStatus(raw json.RawMessage) bool {
	var base struct {
		Status int `json:"status_code"`
	}
	return json.Unmarshal(raw, &base) == nil && base.Status != 0
}

// An object says something if one of its members does.
func isFilled(raw json.RawMessage) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) == nil {
		for _, value := range fields {
			if isFilled(value) {
				return true
			}
		}
		return false
	}
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", `""`, "[]", "false", "0":
		return false
	}
	return true
}

// It is empty if raw is not a JSON string.
func jsonString(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}
