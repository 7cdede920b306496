package main

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// keyVariables are the variables that hold providers' keys.
func keyVariables() []string {
	var names []string
	for _, p := range providers() {
		names = append(names, p.keys...)
	}
	return names
}

// shortestKey is what is long enough to be taken out of texts: a shorter value
// would be found in words that have nothing to do with it.
const shortestKey = 8

// knownKeys are the secret values that this process holds: every provider's
// key, not only the one that is used, and passwords in addresses.
func knownKeys(env func(string) string, addresses ...string) []string {
	var keys []string
	for _, p := range providers() {
		for _, v := range p.keys {
			keys = append(keys, env(v))
		}
		addresses = append(addresses, env(p.base))
	}
	for _, a := range addresses {
		if u, err := url.Parse(a); err == nil && u.User != nil {
			password, _ := u.User.Password()
			keys = append(keys, password)
		}
	}
	return slices.DeleteFunc(keys, func(k string) bool { return len(k) < shortestKey })
}

// redactor takes keys out of a text, also where JSON or a URL has escaped
// them (ruling G6). It returns nil where there are none.
func redactor(keys []string) func(string) string {
	var pairs []string
	for _, k := range keys {
		forms := []string{k, url.QueryEscape(k), url.PathEscape(k)}
		if quoted, err := json.Marshal(k); err == nil {
			forms = append(forms, string(quoted[1:len(quoted)-1]))
		}
		slices.Sort(forms)
		for _, f := range slices.Compact(forms) {
			pairs = append(pairs, f, "[key]")
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return strings.NewReplacer(pairs...).Replace
}
