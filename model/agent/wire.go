package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"hone/model"
)

// The protocols. OpenAI includes both chat completions and Responses.
const (
	Gemini    = "gemini"
	Anthropic = "anthropic"
	OpenAI    = "openai"
)

type wire struct {
	name    string
	own     string         // the provider's address
	version *regexp.Regexp // end of an address that the paths of requests contain; nil means none
	agents  string         // what agents expect at the end of an address
	routes  []route
	key     string   // header of the key
	scheme  string   // before the key
	skip    []string // members that are only text, by a model or a tool, such as a tool's input; see canon
	invalid string   // type of an error that another try will not change
	failing string   // type of any other error
}

type kind int

const (
	free      kind = iota // without cost and output
	generate              // Gemini
	messages              // Anthropic
	chat                  // OpenAI
	responses             // OpenAI
)

type route struct {
	method string
	path   *regexp.Regexp // without characters that a server could interpret; the group "model", if any, is the model
	kind   kind
	query  []string // the allowed parameters
}

type target struct {
	kind  kind
	path  string // below the base's path
	query string
	model string // from the path; may be empty
}

func wires() []wire {
	// A model's name without escapes. OpenRouter's have two such segments.
	const name, versions = `[A-Za-z0-9][A-Za-z0-9._:@+-]*`, `/(?:v1alpha|v1beta|v1)`
	const bare = `[A-Za-z0-9][A-Za-z0-9._-]*`
	const model = versions + `/(?P<model>(?:models|tunedModels)/` + bare + `)`
	re := func(s string) *regexp.Regexp { return regexp.MustCompile(`\A` + s + `\z`) }
	return []wire{
		{name: Gemini, own: "https://generativelanguage.googleapis.com", version: regexp.MustCompile(versions + `\z`), key: "X-Goog-Api-Key",
			skip: []string{"ARGS", "RESPONSE"}, invalid: "INVALID_ARGUMENT", failing: "UNAVAILABLE", routes: []route{
				{http.MethodPost, re(model + `:(?:generateContent|streamGenerateContent)`), generate, []string{"alt"}},
				{http.MethodPost, re(model + `:countTokens`), free, nil},
				{http.MethodGet, re(versions + `/models(?:/` + bare + `)?`), free, []string{"pageSize", "pageToken"}},
			}},
		{name: Anthropic, own: "https://api.anthropic.com", version: regexp.MustCompile(`/v1\z`), key: "X-Api-Key",
			skip: []string{"INPUT"}, invalid: "invalid_request_error", failing: "api_error", routes: []route{
				{http.MethodPost, re(`/v1/messages`), messages, []string{"beta"}},
				{http.MethodPost, re(`/v1/messages/count_tokens`), free, []string{"beta"}},
				{http.MethodGet, re(`/v1/models(?:/` + name + `)?`), free, []string{"limit", "after_id", "before_id", "beta"}},
			}},
		{name: OpenAI, own: "https://api.openai.com/v1", agents: "/v1", key: "Authorization", scheme: "Bearer ",
			invalid: "invalid_request_error", failing: "server_error", routes: []route{
				{http.MethodPost, re(`/chat/completions`), chat, nil},
				{http.MethodPost, re(`/responses`), responses, nil},
				{http.MethodGet, re(`/models(?:/` + name + `){0,2}`), free, []string{"limit", "after", "client_version"}},
			}},
	}
}

// The path is matched as the agent sent it, without decoding or cleaning.
func (w *wire) target(r *http.Request) (target, error) {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	if r.Header.Get("Upgrade") != "" {
		return target{}, errUpgrade
	}
	if w.agents != "" {
		path = strings.TrimPrefix(path, w.agents) // some agents add it, others not
	}
	for _, route := range w.routes {
		match := route.path.FindStringSubmatch(path)
		if match == nil || route.method != r.Method {
			continue
		}
		t := target{kind: route.kind, path: path}
		if i := route.path.SubexpIndex("model"); i >= 0 {
			t.model = strings.TrimPrefix(match[i], "models/")
		}
		values, err := url.ParseQuery(query)
		if err != nil {
			return target{}, forbiddenError("its query is invalid")
		}
		values.Del("key") // any agent may send its key here
		for k, v := range values {
			if !slices.Contains(route.query, k) || len(v) != 1 || len(v[0]) > 1000 || k == "alt" && v[0] != "sse" && v[0] != "json" {
				return target{}, forbiddenError("hone does not forward its query")
			}
		}
		t.query = values.Encode()
		return t, nil
	}
	return target{}, forbiddenError("hone forwards only model calls, token counts and the list of models")
}

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

// minKey is the minimum length of a redacted key: a shorter one would match
// unrelated text.
const minKey = 8

const mark = "[key]"

// redactor removes secrets, in any encoding, from responses (ruling G6). The
// longest come first, because one may be a prefix of another.
type redactor [][]byte

func newRedactor(secrets ...string) redactor {
	var r redactor
	for _, s := range secrets {
		if len(s) < minKey {
			continue
		}
		// Marshal cannot fail for a string.
		quoted, _ := json.Marshal(s)
		inner := string(quoted[1 : len(quoted)-1])
		for _, form := range []string{s, url.QueryEscape(s), url.PathEscape(s), inner, strings.ReplaceAll(inner, "/", `\/`)} {
			r = append(r, []byte(form))
		}
	}
	slices.SortFunc(r, func(a, b []byte) int { return len(b) - len(a) })
	return r
}

func (r redactor) text(s string) string {
	return string((&gate{r: r}).filter([]byte(s), true))
}

// gate removes secrets from a stream. It holds back the end of the data if a
// secret may begin there.
type gate struct {
	r       redactor
	pending []byte
}

// The returned data can be sent now.
func (g *gate) filter(p []byte, last bool) []byte {
	text := append(g.pending, p...)
	out := make([]byte, 0, len(text))
	g.pending = nil
next:
	for len(text) > 0 {
		for _, s := range g.r {
			if bytes.HasPrefix(text, s) {
				out, text = append(out, mark...), text[len(s):]
				continue next
			}
			if !last && bytes.HasPrefix(s, text) {
				g.pending = bytes.Clone(text)
				return out
			}
		}
		out, text = append(out, text[0]), text[1:]
	}
	return out
}
