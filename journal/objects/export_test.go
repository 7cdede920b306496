package objects

// WithoutLog makes the store write packs and files of single objects only, however small
// they are.
func (s *Store) WithoutLog() { s.small = -1 }

// ObjectPath returns the path of an object's own file.
func (s *Store) ObjectPath(name string) string {
	if s.hasFile(name, "") {
		return s.in.At(objectFile(name))
	}
	return s.in.At(objectFile(name) + compressedSuffix)
}
