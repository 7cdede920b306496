package forward

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// kind is what a request is for.
type kind int

const (
	free      kind = iota // it costs nothing and has no output
	generate              // of Gemini
	messages              // of Anthropic
	chat                  // of OpenAI
	responses             // of OpenAI
)

// route is one way that is open.
type route struct {
	method string
	path   *regexp.Regexp // with the model in its group "model", if at all
	kind   kind
	query  []string // the parameters that pass
}

// target is where a request goes.
type target struct {
	kind  kind
	path  string // after the base's
	query string
	model string // that the path names; may be empty
}

// A model's name is one segment of a path, or two (OpenRouter), without an
// escape.
const name = `[A-Za-z0-9][A-Za-z0-9._:@+-]*`

// routes are the ways that a wire has open.
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

// plain reports whether a path is made of ordinary segments, so that nobody on
// the way can read another path out of it.
func plain(path string) bool {
	rest, ok := strings.CutPrefix(path, "/")
	if !ok {
		return false
	}
	for s := range strings.SplitSeq(rest, "/") {
		if s == "" || s == "." || s == ".." || strings.ContainsFunc(s, odd) {
			return false
		}
	}
	return true
}

func odd(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._~:@+", r))
}

// target finds the way that a request asks for, by the letters that the agent
// sent: nothing of it is decoded or cleaned.
func (f *Forward) target(r *http.Request) (target, error) {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	if !plain(path) {
		return target{}, forbidden("this path is not passed on")
	}
	if r.Header.Get("Upgrade") != "" {
		return target{}, errUpgrade
	}
	path = f.withoutBase(path)
	for _, way := range f.routes {
		found := way.path.FindStringSubmatch(path)
		if found == nil || way.method != r.Method {
			continue
		}
		t := target{kind: way.kind, path: path}
		if i := way.path.SubexpIndex("model"); i >= 0 {
			t.model = strings.TrimPrefix(found[i], "models/")
		}
		var err error
		t.query, err = passing(query, way.query)
		return t, err
	}
	return target{}, forbidden("only model calls, counts of tokens and the list of models are passed on")
}

// withoutBase takes off what an agent put before the path for the base's sake.
// OpenAI's variable has the version in it; agents add it where it has not.
func (f *Forward) withoutBase(path string) string {
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

// passing is the part of a query that passes: each parameter of the list, at
// most once. A key is dropped, as every agent may send its own.
func passing(query string, list []string) (string, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", forbidden("this query cannot be read")
	}
	values.Del("key")
	for k, v := range values {
		if !slices.Contains(list, k) || len(v) != 1 || len(v[0]) > 1000 || k == "alt" && v[0] != "sse" && v[0] != "json" {
			return "", forbidden("this query is not passed on")
		}
	}
	return values.Encode(), nil
}
