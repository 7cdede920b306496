package sandbox

import (
	"runtime"
	"slices"
	"strings"
)

// CleanEnv returns a copy of an environment without the variables that drop
// names, such as those with providers' keys (ruling G6). It compares names as
// the system does: without case on Windows. A nil drop removes none.
func CleanEnv(env, drop []string) []string {
	kept := make([]string, 0, len(env))
	for _, kv := range env {
		name := EnvName(kv)
		if !slices.ContainsFunc(drop, func(d string) bool { return sameName(d, name) }) {
			kept = append(kept, kv)
		}
	}
	return kept
}

// EnvValue returns the value of a variable in an environment: the last one if there
// are several, as programs see it, and empty if there is none.
func EnvValue(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if n := EnvName(kv); sameName(n, name) {
			return strings.TrimPrefix(kv[len(n):], "=")
		}
	}
	return ""
}

// EnvName returns the part of KEY=VALUE before the equals sign. On Windows a name may start with
// one.
func EnvName(kv string) string {
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
