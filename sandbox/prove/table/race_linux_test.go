//go:build race

package table

// raced reports whether the race detector is built in.
const raced = true
