package workspace

// Match reports whether a cleaned path is meant by one of the patterns, read
// as Rules read them and with case folded. A pattern that cannot be read means
// nothing here; Review says so.
func Match(list []string, path string) bool {
	for _, p := range list {
		if ps, err := newPatterns([]string{p}, true); err == nil && ps.match(path) {
			return true
		}
	}
	return false
}
