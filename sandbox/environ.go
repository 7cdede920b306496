package sandbox

import (
	"runtime"
	"slices"
	"strings"
)

// CleanEnv is an environment without the variables whose names are in drop,
// such as those that hold providers' keys (ruling G6). Names are compared as
// the system compares them: without case on Windows. The given slices are not
// changed; a nil drop gives a copy.
func CleanEnv(environ, drop []string) []string {
	kept := make([]string, 0, len(environ))
	for _, kv := range environ {
		name := varName(kv)
		if !slices.ContainsFunc(drop, func(d string) bool { return sameName(d, name) }) {
			kept = append(kept, kv)
		}
	}
	return kept
}

// lookup is the value of a variable, which is the last one's where it stands
// more than once.
func lookup(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if n := varName(kv); sameName(n, name) {
			return strings.TrimPrefix(kv[len(n):], "=")
		}
	}
	return ""
}

// varName is what stands before the equals sign. Windows has names that begin
// with one.
func varName(kv string) string {
	if kv == "" {
		return ""
	}
	if i := strings.IndexByte(kv[1:], '='); i >= 0 {
		return kv[:i+1]
	}
	return kv
}

func sameName(a, b string) bool {
	if runtime.GOOS == "windows" {
		return strings.EqualFold(a, b)
	}
	return a == b
}
