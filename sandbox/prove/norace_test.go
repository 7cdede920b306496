//go:build !race

package prove

// raced says that the race detector is built in.
const raced = false
