package agent

import (
	"encoding/json"
	"errors"
	"net/http"

	"hone/model"
)

// refusal is a response of the forwarder itself.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string { return r.message }

func forbiddenError(why string) error {
	return &refusal{http.StatusForbidden, "hone refuses this request: " + why}
}

func malformedError(why string) error {
	return &refusal{http.StatusBadRequest, "hone cannot parse this request: " + model.OneLine(why)}
}

var (
	errBody     = &refusal{http.StatusRequestEntityTooLarge, "hone refuses this request: its body is too large"}
	errNoSecret = &refusal{http.StatusUnauthorized, "hone serves only the agent: send the key from the agent's environment"}
	errEncoded  = &refusal{http.StatusUnsupportedMediaType, "hone refuses this request: its body is encoded"}
	// Agents that prefer a web socket retry with a plain request after this.
	errUpgrade = &refusal{http.StatusUpgradeRequired, "hone forwards plain HTTP requests only"}
)

// errBudget is the response when the budget is used up. No agent retries after
// status 400; some retry after 402 and 403, and all wait after 429. The message
// avoids words by which agents recognize a full context or a busy server, after
// which they would compact or wait.
var errBudget = &refusal{http.StatusBadRequest, "hone refuses this call: the budget of this run is used up. Stop now; all further calls will be refused."}

func refusalFor(err error) *refusal {
	var r *refusal
	var fault *model.Error
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &fault) && fault.Kind == model.Silent:
		return &refusal{http.StatusGatewayTimeout, "the provider does not respond"}
	case errors.As(err, &fault) && fault.Kind == model.Invalid:
		return &refusal{http.StatusBadRequest, "hone cannot forward this call: " + fault.Message}
	}
	return &refusal{http.StatusBadGateway, "the provider is unreachable, or its response is invalid"}
}

// It has the members of every provider's errors.
func (r *refusal) write(w http.ResponseWriter, to *wire) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	kind := to.failing
	if r.status < 500 {
		kind = to.invalid
		// The SDKs of Anthropic and OpenAI check this header first.
		h.Set("X-Should-Retry", "false")
	}
	if r.status == http.StatusUpgradeRequired {
		h.Set("Upgrade", "HTTP/1.1")
	}
	// The unread rest of a body must not become the next request.
	h.Set("Connection", "close")
	w.WriteHeader(r.status)
	fault := map[string]any{"message": r.message, "type": kind, "status": kind, "code": nil}
	if to.name == Gemini {
		fault["code"] = r.status
	}
	// It cannot fail for strings and numbers; the agent may have left.
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "error", "error": fault})
}
