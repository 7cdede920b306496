package sandbox

import "hone/sandbox/internal/environ"

// CleanEnv is an environment without the variables whose names are in drop,
// such as those that hold providers' keys (ruling G6). Names are compared as
// the system compares them: without case on Windows. The given slices are not
// changed; a nil drop gives a copy.
func CleanEnv(env, drop []string) []string { return environ.Without(env, drop) }
