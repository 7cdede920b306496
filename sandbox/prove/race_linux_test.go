//go:build race

package prove

// raced reports whether the race detector is built in.
const raced = true
