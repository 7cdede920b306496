package forward

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"hone/model"
)

// refusal is a response of the forwarder itself.
type refusal struct {
	status  int
	code    string // in OpenAI's format, where agents show it
	message string
}

func (r *refusal) Error() string { return r.message }

// hasSecret reports whether a request contains the secret, or none is set.
func (f *Forward) hasSecret(r *http.Request) bool {
	for _, key := range []string{r.Header.Get("x-goog-api-key"), r.Header.Get("x-api-key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), r.URL.Query().Get("key")} {
		if subtle.ConstantTimeCompare([]byte(key), []byte(f.config.Secret)) == 1 {
			return true
		}
	}
	return f.config.Secret == ""
}

func forbiddenError(why string) error {
	return &refusal{http.StatusForbidden, "not_allowed", "hone refuses this request: " + why}
}

func malformedError(why string) error {
	return &refusal{http.StatusBadRequest, "invalid_request", "hone cannot parse this request: " + model.OneLine(why)}
}

var (
	errBody     = &refusal{http.StatusRequestEntityTooLarge, "request_too_large", "hone refuses this request: its body is too large"}
	errNoSecret = &refusal{http.StatusUnauthorized, "not_the_agent", "hone serves only the agent: send the key from the agent's environment"}
	errEncoded  = &refusal{http.StatusUnsupportedMediaType, "unsupported_encoding", "hone refuses this request: its body is encoded"}
	// Agents that prefer a web socket retry with a plain request after this.
	errUpgrade = &refusal{http.StatusUpgradeRequired, "no_upgrade", "hone forwards plain HTTP requests only"}
)

// errBudget is the response when the budget is used up. No agent retries after
// status 400; some retry after 402 and 403, and all wait after 429. The message
// avoids words by which agents recognize a full context or a busy server, after
// which they would compact or wait.
var errBudget = &refusal{http.StatusBadRequest, "budget_used_up",
	"hone refuses this call: the budget of this run is used up. Stop now; all further calls will be refused."}

// refusalFor returns the response for an error: a refusal is unchanged, and any
// other error becomes one of the provider.
func refusalFor(err error) *refusal {
	var r *refusal
	var fault *model.Error
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &fault) && fault.Kind == model.Silent:
		return &refusal{http.StatusGatewayTimeout, "no_answer", "the provider does not respond"}
	case errors.As(err, &fault) && fault.Kind == model.Invalid:
		return &refusal{http.StatusBadRequest, "no_redirect", "hone cannot forward this call: " + fault.Message}
	}
	return &refusal{http.StatusBadGateway, "no_answer", "the provider is unreachable, or its response is invalid"}
}

// writeRefusal sends a refusal in the format of the wire's errors.
func (f *Forward) writeRefusal(w http.ResponseWriter, r *refusal) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	if r.status < 500 {
		// The SDKs of Anthropic and OpenAI check this header first.
		h.Set("X-Should-Retry", "false")
	}
	if r.status == http.StatusUpgradeRequired {
		h.Set("Upgrade", "HTTP/1.1")
	}
	// The unread rest of a body must not become the next request.
	h.Set("Connection", "close")
	w.WriteHeader(r.status)
	// Marshal cannot fail for strings and numbers.
	body, _ := json.Marshal(r.body(f.config.Wire))
	_, _ = w.Write(append(body, '\n'))
}

func (r *refusal) body(w Wire) any {
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
