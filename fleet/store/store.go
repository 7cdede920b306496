// Package store keeps the files of a fleet where all workers reach them: the parts of
// runs, the manifests that name them, and results.
//
// [Open] opens a directory that the workers share, or a bucket of S3 or a server that
// speaks its protocol. Both offer the same [Store]. Put replaces exactly the version that
// the caller read, so that of two writers that read the same one, one wins, and the other
// gets [ErrConflict].
//
// A store keeps contents as they are. It does not encrypt them, and whoever can write to
// it can replace them: the readers check what they read.
package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"
)

var (
	// ErrNotFound says that there is no object of a name.
	ErrNotFound = errors.New("not found in the store")
	// ErrConflict says that an object has another version than the one to replace.
	ErrConflict = errors.New("somebody else wrote it meanwhile")
)

// Store is a place for named objects. All methods may be called by several processes at
// once. Their errors name the object.
//
// A name has parts of letters, digits, "-", "_" and ".", separated by slashes. No part
// begins with ".".
type Store interface {
	// Get returns an object and its version. The caller closes the content. If there is
	// none, the error wraps ErrNotFound.
	Get(ctx context.Context, name string) (content io.ReadCloser, version string, err error)
	// Put writes an object, all of it or nothing, and returns its new version. It replaces
	// only the version match; if match is empty, there must be no object. Otherwise the
	// error wraps ErrConflict, unless the object has this content already: then an earlier
	// Put of the same content is taken to have succeeded.
	Put(ctx context.Context, name string, content []byte, match string) (version string, err error)
	// List returns the names that begin with prefix, sorted.
	List(ctx context.Context, prefix string) ([]string, error)
	// Delete deletes an object, if there is one. It is for what nobody writes any more.
	Delete(ctx context.Context, name string) error
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
		return nil, fmt.Errorf("the store %s: there is no kind of store %q; name a directory, or s3://BUCKET/PREFIX", where, scheme)
	}
	return openDir(where)
}

// Read reads an object of at most limit bytes.
func Read(ctx context.Context, s Store, name string, limit int64) (content []byte, version string, err error) {
	in, version, err := s.Get(ctx, name)
	if err != nil {
		return nil, "", err
	}
	defer in.Close()
	content, err = io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read %s from the store: %w", name, err)
	}
	return content, version, nil
}

var validPart = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// checkName returns an error if a name is not one of an object.
func checkName(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		if !validPart.MatchString(part) {
			return fmt.Errorf("%q is not the name of an object of a store", name)
		}
	}
	return nil
}

// written returns the version of an object if it has this content; otherwise the error
// wraps ErrConflict.
func written(ctx context.Context, s Store, name string, content []byte) (string, error) {
	now, version, err := Read(ctx, s, name, int64(len(content)))
	if err != nil || !bytes.Equal(now, content) {
		return "", fmt.Errorf("write %s to the store: %w", path.Clean(name), ErrConflict)
	}
	return version, nil
}
