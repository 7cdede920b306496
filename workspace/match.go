package workspace

// Match reports whether one of the patterns matches a cleaned path. Patterns
// are read as in Rules, ignoring case. A malformed pattern matches nothing
// here; Review reports it.
func Match(list []string, path string) bool {
	for _, p := range list {
		if ps, err := newPatterns([]string{p}, true); err == nil && ps.match(path) {
			return true
		}
	}
	return false
}
