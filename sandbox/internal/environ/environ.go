// Package environ reads environments, which are lists of KEY=VALUE.
package environ

import (
	"runtime"
	"slices"
	"strings"
)

// Without is an environment without the variables whose names are in drop,
// such as those that hold providers' keys (ruling G6). Names are compared as
// the system compares them: without case on Windows. The given slices are not
// changed; a nil drop gives a copy.
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

// Value is the value of a variable, which is the last one's where it stands
// more than once.
func Value(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if n := Name(kv); Same(n, name) {
			return strings.TrimPrefix(kv[len(n):], "=")
		}
	}
	return ""
}

// Name is what stands before the equals sign. Windows has names that begin
// with one.
func Name(kv string) string {
	if kv == "" {
		return ""
	}
	if i := strings.IndexByte(kv[1:], '='); i >= 0 {
		return kv[:i+1]
	}
	return kv
}

func Same(a, b string) bool {
	if runtime.GOOS == "windows" {
		return strings.EqualFold(a, b)
	}
	return a == b
}
