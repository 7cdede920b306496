package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Fault returns the [*Error] that describes why an attempt failed; nil for a
// nil err. If the caller's context is done, it returns the context's error.
// The kind follows from what the exchange saw (which timeout fired, whether
// there was a connection, the HTTP status, what ended the body) and only then
// from err. An err that is io.EOF means that the response lacks its last event.
//
// If the status is 300 or more, the message is read from the response body,
// in any of the shapes that providers use, so that no SDK's error type is
// needed.
func (x *Exchange) Fault(err error) error {
	if err == nil {
		return nil
	}
	if parent := x.parent.Err(); parent != nil {
		return parent
	}
	var known *Error
	if errors.As(context.Cause(x.ctx), &known) || errors.As(err, &known) {
		return known
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.response.fault(err)
}

func (r *response) fault(err error) *Error {
	switch {
	case errors.Is(r.err, errTooLarge), errors.Is(r.err, errLongLine):
		return &Error{Kind: Garbage, Message: r.err.Error()}
	case r.err != nil:
		return &Error{Kind: Cut, Message: "the response ended early: " + errorText(r.err)}
	case r.status >= 300:
		message, code := ErrorBody(r.body.Bytes())
		return StatusError(r.status, r.header, message, code)
	case r.status != 0 && errors.Is(err, io.EOF):
		return &Error{Kind: Cut, Message: "the response ended early"}
	case r.status != 0:
		return &Error{Kind: Garbage, Message: "cannot parse the response: " + errorText(err)}
	case r.connected:
		return &Error{Kind: Cut, Message: "the server closed the connection without a response: " + errorText(err)}
	case r.dialed:
		return &Error{Kind: Unreachable, Message: errorText(err)}
	}
	return &Error{Kind: Invalid, Message: errorText(err)}
}

// errorText returns err's text without the URL that net/http puts before it,
// which may contain a key.
func errorText(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return OneLine(err.Error())
}

// StatusError returns the error for an HTTP status of 300 or more, or, with
// status 0, for an error that arrived inside a stream. Message and code are
// the provider's and may be empty. The header, which may be nil, is read for
// Retry-After.
func StatusError(status int, header http.Header, message, code string) *Error {
	e := &Error{
		Kind:       kindOf(status, strings.ToLower(message), strings.ToLower(code)),
		Status:     status,
		Message:    OneLine(cmp.Or(message, code, http.StatusText(status), "no error message")),
		RetryAfter: retryAfter(header, time.Now()),
	}
	if status == http.StatusNotFound {
		e.Hint = "no such model? Make sure that its name and the endpoint's address are right"
		e.Alternative = "start a new run with another model"
	}
	return e
}

// kindOf considers the provider's message and code before the status, because
// providers report a full context or an empty account under statuses that
// also mean something else.
func kindOf(status int, message, code string) Kind {
	switch {
	case status == http.StatusRequestEntityTooLarge, containsAny(code, contextCodes), containsAny(message, contextWords):
		return TooLong
	case status == http.StatusPaymentRequired, containsAny(code, quotaCodes), containsAny(message, quotaWords):
		return Quota
	case containsAny(message, keyWords):
		return Auth
	}
	switch status {
	case 0:
		return kindOfCode(code)
	case http.StatusUnauthorized, http.StatusForbidden:
		return Auth
	case http.StatusTooManyRequests:
		return RateLimited
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, statusClientClosed:
		return Overloaded
	}
	if status >= 500 {
		return Overloaded
	}
	return Invalid
}

// kindOfCode classifies an error inside a stream. An unknown code counts as
// temporary.
func kindOfCode(code string) Kind {
	switch {
	case strings.Contains(code, "rate_limit"), strings.Contains(code, "resource_exhausted"):
		return RateLimited
	case strings.Contains(code, "authentication"), strings.Contains(code, "permission"), strings.Contains(code, "api_key"):
		return Auth
	case strings.Contains(code, "invalid"), strings.Contains(code, "not_found"):
		return Invalid
	}
	return Overloaded
}

const (
	// OpenAI, Anthropic (request_too_large), llama.cpp (exceed_context_size_error).
	contextCodes = "context_length|context_window|exceed_context_size|request_too_large|string_above_max_length"
	// OpenAI and vLLM, Anthropic, Gemini, llama.cpp, Ollama.
	contextWords = "maximum context length|context window|context length|context size|prompt is too long|" +
		"input token count exceeds|input token count ("
	// OpenAI and Anthropic. Gemini's quota message is not listed, because it
	// is also used for limits per minute.
	quotaCodes = "insufficient_quota|billing"
	quotaWords = "credit balance is too low"
	// Gemini answers with status 400 to a wrong key.
	keyWords = "api key not valid|api key expired"
)

// containsAny reports whether text contains one of words, which are separated
// by bars.
func containsAny(text, words string) bool {
	for word := range strings.SplitSeq(words, "|") {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// maxAfter limits the wait that a server may ask for.
const maxAfter = 24 * time.Hour

// retryAfter reads retry-after-ms, or Retry-After in seconds or as an HTTP
// date; 0 if neither is present. A date is compared with the response's Date
// header if there is one.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d, ok := parseDelay(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	value := h.Get("Retry-After")
	if d, ok := parseDelay(value, time.Second); ok {
		return d
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(0, at.Sub(now)), maxAfter)
}

func parseDelay(value string, unit time.Duration) (time.Duration, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || f != f {
		return 0, false
	}
	f = min(max(0, f), float64(maxAfter/unit))
	return time.Duration(f * float64(unit)), true
}

// ErrorBody returns the message and the code of an error's JSON, for
// [StatusError]; both are empty if it has none. The body may be a response's
// or an event's. Providers use {"error":{"message","code","type","status"}},
// {"error":"text"}, {"message"} or {"detail":"text"}; Gemini's streams wrap
// it in an array. A plain text body is itself the message.
func ErrorBody(body []byte) (message, code string) {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return plainText(body), ""
	}
	if inner, ok := fields["error"]; ok {
		if text := jsonString(inner); text != "" {
			return text, ""
		}
		if json.Unmarshal(inner, &fields) != nil {
			return "", ""
		}
	}
	return cmp.Or(jsonString(fields["message"]), jsonString(fields["detail"])),
		strings.Join([]string{jsonString(fields["code"]), jsonString(fields["type"]), jsonString(fields["status"])}, " ")
}

// jsonString returns the decoded string; empty if raw is not a JSON string.
func jsonString(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// plainText returns the body unless it is a web page, as proxies send.
func plainText(body []byte) string {
	if bytes.HasPrefix(body, []byte("<")) {
		return ""
	}
	return string(body)
}

// maxMessage limits an error's message, in bytes.
const maxMessage = 500

// OneLine makes untrusted text safe for an error's message: one line of valid
// UTF-8 without control characters, at most 500 bytes long.
func OneLine(s string) string {
	if len(s) > 8*maxMessage {
		s = s[:8*maxMessage]
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= maxMessage {
		return s
	}
	cut := maxMessage - len("…")
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
