package model

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
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
		e := readError(r.frames.body)
		return e.fault(r.status, r.header)
	case r.status != 0 && errors.Is(err, io.EOF):
		return &Error{Kind: Cut, Message: "the response ended early"}
	case r.status != 0:
		return &Error{Kind: Garbage, Message: "cannot parse the response: " + errorText(err)}
	case r.dialed && isLoginOfProxy(err):
		return statusError(http.StatusProxyAuthRequired, 0, "", "")
	case r.connected:
		return &Error{Kind: Cut, Message: "the server closed the connection without a response: " + errorText(err)}
	case r.dialed:
		return &Error{Kind: Unreachable, Message: errorText(err)}
	}
	return &Error{Kind: Invalid, Message: errorText(err)}
}

// net/http gives only the text of a proxy that refuses a tunnel.
func isLoginOfProxy(err error) bool {
	return strings.EqualFold(errorText(err), http.StatusText(http.StatusProxyAuthRequired))
}

// net/http puts the URL before the text, which may contain a key.
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
	return statusError(status, retryAfter(header, time.Now()), message, code)
}

func statusError(status int, wait time.Duration, message, code string) *Error {
	e := &Error{
		Status:     status,
		Message:    OneLine(cmp.Or(message, strings.TrimSpace(code), http.StatusText(status), "no error message")),
		RetryAfter: wait,
	}
	e.Kind, _ = kindOf(status, wait, strings.ToLower(bothEnds(message)+" "+bothEnds(code)))
	e.Hint, e.Alternative = remedy(e)
	return e
}

// bothEnds returns what is read of a text for its signs: longer ones quote the prompt, or are pages.
func bothEnds(text string) string {
	const most = 8 * maxMessage
	if len(text) <= 2*most {
		return text
	}
	return text[:most] + " " + text[len(text)-most:]
}

// A provider adds the variable of its key. For a full context the caller starts a new run.
func remedy(e *Error) (hint, alternative string) {
	const anotherModel = "start a new run with another model"
	switch {
	case e.Status == http.StatusProxyAuthRequired:
		return "make sure that the user name and the password in HTTPS_PROXY or HTTP_PROXY are right", ""
	case e.Kind == TooLong && e.Message == http.StatusText(http.StatusRequestEntityTooLarge): // the page of a proxy
		return "raise the limit for the size of a request (nginx: client_max_body_size)", ""
	case e.Kind == OutputLimit:
		return "set a smaller max-output in [model] of .config/hone.toml", anotherModel
	case e.Kind == Quota && strings.Contains(e.Message, "max_tokens"):
		return "add credit to the account, or set a smaller max-output in [model] of .config/hone.toml", anotherModel
	case e.Kind == Quota:
		return "add credit to the account, or raise its limit", anotherModel
	case e.Kind == NoModel, e.Status == http.StatusNotFound:
		return "no such model? Make sure that its name and the endpoint's address are right", anotherModel
	}
	return "", ""
}

// EventFault returns the error of the provider that the data of an event is; nil if it is
// none.
func EventFault(data []byte) *Error {
	e := new(errorBody)
	if !e.find("", data, false) {
		return nil
	}
	fault := e.fault(e.status, nil)
	fault.Streamed = true
	return fault
}

var errorMarks = []string{`"error`, `"message"`, `"msg"`, `"detail"`, `"base_resp"`}

// It is nil if the event is none. An error that is the whole body releases the reserve as its class would; one in a stream does
// not (rulings G17, G23).
func (r *response) eventFault(e event) *Error {
	// Most events are parts of a reply, and are parsed only once.
	mayBe := r.frames.plain || e.name == "error" || slices.ContainsFunc(errorMarks, func(m string) bool { return bytes.Contains(e.data, []byte(m)) })
	var read errorBody
	if !mayBe || !read.find(e.name, e.data, r.frames.plain) {
		return nil
	}
	fault := read.fault(read.status, r.header)
	if fault.Streamed = !r.frames.plain || len(r.events) > 1; !fault.Streamed {
		fault.Status = cmp.Or(fault.Status, r.status)
	}
	return fault
}

// A line of text may be an error in words (ruling G23). Anything longer, and what begins like JSON or a page, is garbage: it may
// be a part of a reply.
func (r *response) textFault(data []byte) *Error {
	text := string(bytes.TrimSpace(data))
	wait := retryAfter(r.header, time.Now())
	if _, known := kindOf(0, wait, strings.ToLower(text)); known && len(r.events) == 1 && len(text) <= maxMessage && strings.IndexAny(text, `{["<`) != 0 {
		fault := statusError(0, wait, text, "")
		fault.Status = r.status
		return fault
	}
	return &Error{Kind: Garbage, Message: OneLine("the response is not JSON: " + cmp.Or(plainText(data), "a web page"))}
}

// maxAfter limits the wait that a server may ask for.
const maxAfter = 24 * time.Hour

// It is retry-after-ms, or Retry-After in seconds or as an HTTP date; 0 if neither is present. A date is compared with the
// response's Date header if there is one.
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

// ErrorBody returns the message and the codes of an error's JSON, for
// [StatusError]; both are empty if it has none. The body may be a response's
// or an event's. A plain text body is itself the message.
func ErrorBody(body []byte) (message, code string) {
	e := readError(body)
	return e.message(), e.code()
}

// Proxies send web pages.
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
