package sandbox

import "hone/sandbox/internal/environ"

// CleanEnv returns a copy of an environment without the variables that drop
// names, such as those with providers' keys (ruling G6). It compares names as
// the system does: without case on Windows. A nil drop removes none.
func CleanEnv(env, drop []string) []string { return environ.Without(env, drop) }
