package kernel

// must is a value that is there, or the end of the tests.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
