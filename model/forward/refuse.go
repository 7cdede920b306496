package forward

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"hone/model"
)

// refusal is an answer that the forwarder gives itself.
type refusal struct {
	status  int
	code    string // OpenAI's, which agents show
	message string
}

func (r *refusal) Error() string { return r.message }

// admits reports whether a request brings the secret, where there is one.
func (f *Forward) admits(r *http.Request) bool {
	for _, brought := range []string{r.Header.Get("x-goog-api-key"), r.Header.Get("x-api-key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.URL.Query().Get("key")} {
		if subtle.ConstantTimeCompare([]byte(brought), []byte(f.config.Secret)) == 1 {
			return true
		}
	}
	return f.config.Secret == ""
}

func forbidden(why string) error {
	return &refusal{http.StatusForbidden, "not_allowed", "hone refuses this request: " + why}
}

func malformed(why string) error {
	return &refusal{http.StatusBadRequest, "invalid_request", "hone cannot read this request: " + model.OneLine(why)}
}

var (
	errBody     = &refusal{http.StatusRequestEntityTooLarge, "request_too_large", "hone refuses this request: its body is too large"}
	errStranger = &refusal{http.StatusUnauthorized, "not_the_agent", "hone answers the agent alone: the key that it was given is missing"}
	errEncoded  = &refusal{http.StatusUnsupportedMediaType, "unsupported_encoding", "hone refuses this request: its body is encoded"}
	// An agent that would rather have a web socket takes this for the hint that
	// a plain request does it.
	errUpgrade = &refusal{http.StatusUpgradeRequired, "no_upgrade", "hone passes on plain HTTP requests only"}
)

// errBudget is the answer past the budget. Its status is the one that no agent
// tries again: of 402 and 403 some think that they pass, and 429 is waited
// for. Its words are none of those by which agents tell a full context or a
// busy server, for which they would compact or wait.
var errBudget = &refusal{http.StatusBadRequest, "budget_used_up",
	"hone refuses this call: the budget of this run is used up. Stop here, no further call will be answered."}

// answerFor is how an error is told to the agent: a refusal as it is, a fault
// on the way to the provider as one of the provider.
func answerFor(err error) *refusal {
	var r *refusal
	var fault *model.Error
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &fault) && fault.Kind == model.Silent:
		return &refusal{http.StatusGatewayTimeout, "no_answer", "the provider does not answer"}
	case errors.As(err, &fault) && fault.Kind == model.Invalid:
		return &refusal{http.StatusBadRequest, "no_redirect", "hone cannot pass this call on: " + fault.Message}
	}
	return &refusal{http.StatusBadGateway, "no_answer", "the provider cannot be reached, or its answer cannot be read"}
}

// tell answers with a refusal, in the shape of the wire's own errors.
func (f *Forward) tell(w http.ResponseWriter, r *refusal) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if r.status < 500 {
		// The SDKs of Anthropic and OpenAI ask this header first.
		h.Set("X-Should-Retry", "false")
	}
	if r.status == http.StatusUpgradeRequired {
		h.Set("Upgrade", "HTTP/1.1")
	}
	// What was not read of a body must not become the next request.
	h.Set("Connection", "close")
	w.WriteHeader(r.status)
	// Strings and numbers can always be encoded.
	body, _ := json.Marshal(r.shape(f.config.Wire))
	_, _ = w.Write(append(body, '\n'))
}

func (r *refusal) shape(w Wire) any {
	type object = map[string]any
	switch w {
	case Gemini:
		return object{"error": object{"code": r.status, "message": r.message, "status": r.geminiStatus()}}
	case Anthropic:
		return object{"type": "error", "error": object{"type": r.anthropicType(), "message": r.message}}
	}
	kind := "invalid_request_error"
	if r.status >= 500 {
		kind = "server_error"
	}
	return object{"error": object{"message": r.message, "type": kind, "param": nil, "code": r.code}}
}

func (r *refusal) geminiStatus() string {
	switch {
	case r.status == http.StatusForbidden:
		return "PERMISSION_DENIED"
	case r.status == http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	case r.status >= 500:
		return "UNAVAILABLE"
	case r == errBudget:
		return "FAILED_PRECONDITION"
	}
	return "INVALID_ARGUMENT"
}

func (r *refusal) anthropicType() string {
	switch {
	case r.status == http.StatusForbidden:
		return "permission_error"
	case r.status == http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case r.status >= 500:
		return "api_error"
	}
	return "invalid_request_error"
}
