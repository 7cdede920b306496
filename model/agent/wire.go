package agent

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
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
