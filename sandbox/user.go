package sandbox

// User is whom commands run as. The zero User is that of this process.
//
// Root in a container works in the tree of the user who mounted it there. Its commands run as
// that user, so that they can write the tree, and what they write is the user's. They keep
// root's power over the modes of files: in a user namespace over those of root and of that
// user, which these could change themselves.
type User struct{ UID, GID int }
