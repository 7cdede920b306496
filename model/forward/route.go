package forward

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// kind is the purpose of a request.
type kind int

const (
	free      kind = iota // without cost and output
	generate              // Gemini
	messages              // Anthropic
	chat                  // OpenAI
	responses             // OpenAI
)

// route is one kind of request that is forwarded.
type route struct {
	method string
	path   *regexp.Regexp // the group "model", if any, is the model
	kind   kind
	query  []string // the allowed parameters
}

// target is the provider's address for a request.
type target struct {
	kind  kind
	path  string // below the base's path
	query string
	model string // from the path; may be empty
}

// name matches a model's name without escapes. OpenRouter's have two such
// segments.
const name = `[A-Za-z0-9][A-Za-z0-9._:@+-]*`

// routes returns the requests that are forwarded on a wire.
func routes(w Wire) []route {
	re := func(s string) *regexp.Regexp { return regexp.MustCompile(`\A` + s + `\z`) }
	switch w {
	case Gemini:
		version := `/(?:` + strings.Join(geminiVersions(), "|") + `)`
		const bare = `[A-Za-z0-9][A-Za-z0-9._-]*`
		named := version + `/(?P<model>(?:models|tunedModels)/` + bare + `)`
		return []route{
			{http.MethodPost, re(named + `:(?:generateContent|streamGenerateContent)`), generate, []string{"alt"}},
			{http.MethodPost, re(named + `:countTokens`), free, nil},
			{http.MethodGet, re(version + `/models(?:/` + bare + `)?`), free, []string{"pageSize", "pageToken"}},
		}
	case Anthropic:
		list := []string{"limit", "after_id", "before_id", "beta"}
		return []route{
			{http.MethodPost, re(`/v1/messages`), messages, []string{"beta"}},
			{http.MethodPost, re(`/v1/messages/count_tokens`), free, []string{"beta"}},
			{http.MethodGet, re(`/v1/models(?:/` + name + `)?`), free, list},
		}
	}
	return []route{
		{http.MethodPost, re(`/chat/completions`), chat, nil},
		{http.MethodPost, re(`/responses`), responses, nil},
		{http.MethodGet, re(`/models(?:/` + name + `){0,2}`), free, []string{"limit", "after", "client_version"}},
	}
}

// isPlainPath reports whether a path has only ordinary segments, so that no
// server can interpret it as another path.
func isPlainPath(path string) bool {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return false
	}
	for s := range strings.SplitSeq(rest, "/") {
		if s == "" || s == "." || s == ".." || strings.ContainsFunc(s, isUnusual) {
			return false
		}
	}
	return true
}

func isUnusual(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~:@+", r))
}

// target returns the target of a request. It matches the path as the agent sent
// it, without decoding or cleaning.
func (f *Forward) target(r *http.Request) (target, error) {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	if !isPlainPath(path) {
		return target{}, forbiddenError("hone does not forward this path")
	}
	if r.Header.Get("Upgrade") != "" {
		return target{}, errUpgrade
	}
	path = f.trimBase(path)
	for _, route := range f.routes {
		match := route.path.FindStringSubmatch(path)
		if match == nil || route.method != r.Method {
			continue
		}
		t := target{kind: route.kind, path: path}
		if i := route.path.SubexpIndex("model"); i >= 0 {
			t.model = strings.TrimPrefix(match[i], "models/")
		}
		var err error
		t.query, err = allowedQuery(query, route.query)
		return t, err
	}
	return target{}, forbiddenError("hone forwards only model calls, token counts and the list of models")
}

// trimBase removes the path of the base URL. For OpenAI, whose variable contains
// the version, agents add the version if it is missing.
func (f *Forward) trimBase(path string) string {
	for _, prefix := range []string{f.base.Path, "/v1"} {
		if prefix == "/v1" && f.config.Wire != OpenAI {
			continue
		}
		if rest, ok := strings.CutPrefix(path, prefix+"/"); ok && prefix != "" {
			return "/" + rest
		}
	}
	return path
}

// allowedQuery returns the query without a key, which any agent may send. A
// parameter that is not in the list or occurs twice is an error.
func allowedQuery(query string, list []string) (string, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", forbiddenError("its query is invalid")
	}
	values.Del("key")
	for k, v := range values {
		if !slices.Contains(list, k) || len(v) != 1 || len(v[0]) > 1000 || k == "alt" && v[0] != "sse" && v[0] != "json" {
			return "", forbiddenError("hone does not forward its query")
		}
	}
	return values.Encode(), nil
}
