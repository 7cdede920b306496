package sandbox

import "hone/sandbox/internal/environ"

// CleanEnv returns a copy of an environment without the variables that drop
// names, such as those with providers' keys (ruling G6). It compares names as
// the system does: without case on Windows. A nil drop removes none.
func CleanEnv(env, drop []string) []string { return environ.Without(env, drop) }

// EnvValue returns the value of a variable in an environment: the last one if there
// are several, as programs see it, and empty if there is none.
func EnvValue(env []string, name string) string { return environ.Value(env, name) }
