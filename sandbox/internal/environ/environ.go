// Package environ reads environments: lists of KEY=VALUE.
package environ

import (
	"runtime"
	"slices"
	"strings"
)

// Without returns a copy of an environment without the variables that drop names,
// such as those with providers' keys (ruling G6). A nil drop removes none.
func Without(environ, drop []string) []string {
	kept := make([]string, 0, len(environ))
	for _, kv := range environ {
		name := Name(kv)
		if !slices.ContainsFunc(drop, func(d string) bool { return Same(d, name) }) {
			kept = append(kept, kv)
		}
	}
	return kept
}

// Value returns the value of a variable: the last one if there are several, and
// empty if there is none.
func Value(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if n := Name(kv); Same(n, name) {
			return strings.TrimPrefix(kv[len(n):], "=")
		}
	}
	return ""
}

// Name returns the part before the equals sign. On Windows a name may start with
// one.
func Name(kv string) string {
	if kv == "" {
		return ""
	}
	if i := strings.IndexByte(kv[1:], '='); i >= 0 {
		return kv[:i+1]
	}
	return kv
}

// Same reports whether two names are equal: without case on Windows.
func Same(a, b string) bool {
	if runtime.GOOS == "windows" {
		return strings.EqualFold(a, b)
	}
	return a == b
}
