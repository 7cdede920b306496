package model

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Fault words what went wrong with an attempt. The caller's own cancellation
// and deadline pass through as they are; every other error becomes an
// [*Error]. What kind it is follows from what the exchange saw (which
// time-out fired, whether a connection was had, the HTTP status, what ended
// the body) and only then from err. A nil err has no fault.
//
// An HTTP status of 400 or more is read from the answer's body, in any of the
// shapes that providers use; an SDK's own error type is not needed for that.
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
	return x.answer.fault(err)
}

func (a *answer) fault(err error) *Error {
	switch {
	case errors.Is(a.err, errTooLarge):
		return &Error{Kind: Garbage, Message: "the answer is too large to be one"}
	case a.err != nil:
		return &Error{Kind: Cut, Message: "the answer ended early: " + errorText(a.err)}
	case a.status >= 300:
		message, code := ErrorBody(a.body.Bytes())
		return StatusError(a.status, a.header, message, code)
	case a.status != 0:
		return &Error{Kind: Garbage, Message: "the answer cannot be read: " + errorText(err)}
	case a.connected:
		return &Error{Kind: Cut, Message: "the server closed the connection without an answer: " + errorText(err)}
	case a.dialed:
		return &Error{Kind: Unreachable, Message: errorText(err)}
	}
	return &Error{Kind: Invalid, Message: errorText(err)}
}

// errorText is an error's text without the URL that net/http puts before it,
// which may hold a key.
func errorText(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return OneLine(err.Error())
}

// StatusError is the error for an HTTP status of 300 or more, or for an error
// that came inside of a stream, whose status is 0. Message and code are the
// provider's own and may be empty; header, which may be nil, is asked for
// Retry-After.
func StatusError(status int, header http.Header, message, code string) *Error {
	return &Error{
		Kind:    kindOf(status, strings.ToLower(message), strings.ToLower(code)),
		Status:  status,
		Message: OneLine(cmp.Or(message, code, http.StatusText(status), "an error without a message")),
		After:   retryAfter(header, time.Now()),
	}
}

// kindOf reads the provider's words first: a full context or an empty account
// comes under statuses that also mean something else.
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
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return Overloaded
	}
	if status >= 500 {
		return Overloaded
	}
	return Invalid
}

// kindOfCode reads an error that came inside of a stream. One that says
// nothing may pass.
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
	// OpenAI and Anthropic. Gemini's message about its quota also stands for
	// the limit of a minute, which passes.
	quotaCodes = "insufficient_quota|billing"
	quotaWords = "credit balance is too low"
	// Gemini answers a wrong key with 400.
	keyWords = "api key not valid|api key expired"
)

// containsAny reports whether text holds one of the words between the bars.
func containsAny(text, words string) bool {
	for word := range strings.SplitSeq(words, "|") {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// maxAfter caps what a server may ask a caller to wait.
const maxAfter = 24 * time.Hour

// retryAfter reads retry-after-ms, or Retry-After as seconds or as an HTTP
// date; 0 where there is neither. A date is measured against the server's own
// clock where its answer tells that.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if d, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	value := h.Get("Retry-After")
	if d, ok := number(value, time.Second); ok {
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

func number(value string, unit time.Duration) (time.Duration, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	if err != nil || f != f {
		return 0, false
	}
	f = min(max(0, f), float64(maxAfter/unit))
	return time.Duration(f * float64(unit)), true
}

// ErrorBody finds the message and the code in an error's JSON, a body or an
// event of a stream, for [StatusError]; both are empty where it has none.
// Providers use {"error":{"message","code","type","status"}},
// {"error":"text"}, {"message"} or {"detail":"text"}; Gemini's streams wrap
// it in an array. A body that is plain text is the message itself.
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

// jsonString is raw's string, empty if it is none.
func jsonString(raw json.RawMessage) string {
	var s string
	_ = json.Unmarshal(raw, &s)
	return s
}

// plainText is a body that is not JSON, unless it is a proxy's web page.
func plainText(body []byte) string {
	if bytes.HasPrefix(body, []byte("<")) {
		return ""
	}
	return string(body)
}

// maxMessage is the most bytes of an error's message.
const maxMessage = 500

// OneLine makes text from outside fit for an error's message: one line of
// valid UTF-8 without control characters, of 500 bytes at most.
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
