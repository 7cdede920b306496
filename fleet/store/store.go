// Package store keeps the files of a fleet where all workers can reach them: the entries of
// runs, and results.
//
// [Open] opens a directory that the workers share, or a bucket of S3 or of a compatible
// server. An object is written once and never changes: of all writers of a name one succeeds,
// and the others get [ErrExists].
//
// A store does not encrypt contents, and anyone who can write to it can replace them:
// readers must check what they read.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

var (
	// ErrNotFound means that no object has the name.
	ErrNotFound = errors.New("not found in the store")
	// ErrExists means that an object has the name already.
	ErrExists = errors.New("it exists already")
)

// Store is a place for named objects. Several processes may call its methods at once. Their
// errors name the object.
//
// A name has parts of letters, digits, "-", "_" and ".", separated by slashes. No part
// begins with ".".
type Store interface {
	// Get returns the content of an object, which the caller closes. If the object does not
	// exist, the error wraps ErrNotFound.
	Get(ctx context.Context, name string) (content io.ReadCloser, err error)
	// Create writes a whole object, content from its start to its end, or nothing. If the object
	// exists, the error wraps ErrExists; an earlier try of the same call may have written it.
	Create(ctx context.Context, name string, content io.ReadSeeker) error
	// List returns the names that begin with prefix, sorted.
	List(ctx context.Context, prefix string) ([]string, error)
}

// Open opens a store: a directory, or s3://BUCKET/PREFIX?endpoint=URL&region=NAME. The
// prefix and both parameters may be left out; the endpoint is then that of AWS.
// The credentials are AWS's usual ones: the variables AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, the file ~/.aws/credentials, or the role of
// the machine.
func Open(where string) (Store, error) {
	if strings.HasPrefix(where, "s3://") {
		return openS3(where)
	}
	if scheme, _, ok := strings.Cut(where, "://"); ok {
		return nil, fmt.Errorf("the store %s: %s:// is not supported; name a directory, or s3://BUCKET/PREFIX", where, scheme)
	}
	return openDir(where)
}

var validPart = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

func checkName(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		if !validPart.MatchString(part) {
			return fmt.Errorf("%q is not a valid name of an object", name)
		}
	}
	return nil
}
