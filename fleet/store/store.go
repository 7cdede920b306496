// Package store keeps the files of a fleet where all workers can reach them: the parts of
// runs, the manifests that name them, and results.
//
// [Open] opens a directory that the workers share, or a bucket of S3 or of a compatible
// server. Put replaces exactly the version that the caller read: if two writers read the
// same version, one of them succeeds, and the other gets [ErrConflict].
//
// A store does not encrypt contents, and anyone who can write to it can replace them:
// readers must check what they read.
package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

var (
	// ErrNotFound means that no object has the name.
	ErrNotFound = errors.New("not found in the store")
	// ErrConflict means that an object no longer has the version to replace.
	ErrConflict = errors.New("somebody else has changed it")
)

// Store is a place for named objects. Several processes may call its methods at once. Their
// errors name the object.
//
// A name has parts of letters, digits, "-", "_" and ".", separated by slashes. No part
// begins with ".".
type Store interface {
	// Get returns an object and its version. The caller closes the content. If the object
	// does not exist, the error wraps ErrNotFound.
	Get(ctx context.Context, name string) (content io.ReadCloser, version string, err error)
	// Put writes a whole object, content from its start to its end, or nothing, and returns its new version. It replaces only
	// the version match; if match is empty, the object must not exist. Otherwise the error
	// wraps ErrConflict, unless the object has this content already: then Put succeeds.
	Put(ctx context.Context, name string, content io.ReadSeeker, match string) (version string, err error)
	// List returns the names that begin with prefix, sorted.
	List(ctx context.Context, prefix string) ([]string, error)
	// Delete deletes an object if it exists. Nobody may write it at the same time.
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
		return nil, fmt.Errorf("the store %s: %s:// is not supported; name a directory, or s3://BUCKET/PREFIX", where, scheme)
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

func checkName(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		if !validPart.MatchString(part) {
			return fmt.Errorf("%q is not a valid name of an object", name)
		}
	}
	return nil
}

// If the object has another content, the error wraps ErrConflict.
func written(ctx context.Context, s Store, name string, content io.ReadSeeker) (string, error) {
	now, version, err := s.Get(ctx, name)
	if err == nil {
		defer now.Close()
		_, err = content.Seek(0, io.SeekStart)
	}
	if err == nil {
		var there, here []byte
		there, err = digest(now)
		if err == nil {
			here, err = digest(content)
		}
		if err == nil && bytes.Equal(there, here) {
			return version, nil
		}
	}
	return "", fmt.Errorf("write %s to the store: %w", name, ErrConflict)
}

func digest(r io.Reader) ([]byte, error) {
	sum := sha256.New()
	_, err := io.Copy(sum, r)
	return sum.Sum(nil), err
}
