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
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
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

// dir is a store in a directory. To write an object, a process makes a hard link to a complete
// file. So no lock survives a killed process, and of all writers exactly one succeeds, also
// over NFS, where the server makes the link.
type dir struct{ root string }

// newPrefix begins the names of files that become an object.
const newPrefix = ".new-"

func openDir(root string) (Store, error) {
	if root == "" {
		return nil, errors.New("the name of the store is empty: name a directory, or s3://BUCKET/PREFIX")
	}
	root, err := filepath.Abs(root)
	if err == nil {
		err = os.MkdirAll(root, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	return dir{root}, nil
}

func (d dir) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

func (d dir) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	err := errors.Join(checkName(name), ctx.Err())
	var f *os.File
	if err == nil {
		f, err = os.Open(d.path(name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("read %s from the store: %w", name, err)
	}
	return f, nil
}

func (d dir) Create(ctx context.Context, name string, content io.ReadSeeker) error {
	err := errors.Join(checkName(name), ctx.Err())
	if err == nil {
		err = d.link(name, content)
	}
	if errors.Is(err, fs.ErrExist) {
		err = ErrExists
	}
	if err != nil {
		return fmt.Errorf("write %s to the store: %w", name, err)
	}
	return nil
}

func (d dir) link(name string, content io.ReadSeeker) error {
	folder := filepath.Dir(d.path(name))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, newPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = content.Seek(0, io.SeekStart); err == nil {
		_, err = io.Copy(f, content)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), d.path(name))
}

func (d dir) List(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	top := d.root
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		if err := checkName(prefix[:i]); err != nil {
			return nil, err
		}
		top = d.path(prefix[:i])
	}
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // deleted meanwhile, or never written
		}
		if err != nil || !e.Type().IsRegular() || strings.HasPrefix(e.Name(), newPrefix) {
			return errors.Join(err, ctx.Err())
		}
		name, err := filepath.Rel(d.root, path)
		if name = filepath.ToSlash(name); strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the store: %w", err)
	}
	slices.Sort(names)
	return names, nil
}

// bucket is a store in a bucket. Its server must support conditional writes (If-None-Match),
// as AWS, MinIO, Ceph and Cloudflare do.
type bucket struct {
	client *minio.Core
	name   string
	prefix string // empty, or ends in a slash
}

const awsEndpoint = "https://s3.amazonaws.com"

func openS3(where string) (Store, error) {
	u, err := url.Parse(where)
	if err != nil {
		return nil, fmt.Errorf("the store: %w", err)
	}
	address := u.Query().Get("endpoint")
	if address == "" {
		address = awsEndpoint
	}
	endpoint, err := url.Parse(address)
	if err != nil || endpoint.Host == "" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("the store %s is not s3://BUCKET/PREFIX?endpoint=https://HOST; credentials come from the environment", u.Redacted())
	}
	client, err := minio.NewCore(endpoint.Host, &minio.Options{
		Secure: endpoint.Scheme == "https", Region: u.Query().Get("region"),
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("the store %s: %w", where, err)
	}
	b := bucket{client: client, name: u.Host, prefix: strings.Trim(u.Path, "/")}
	if b.prefix != "" {
		b.prefix += "/"
	}
	return b, nil
}

func failure(what, name string, err error) error {
	switch r := minio.ToErrorResponse(err); {
	case r.Code == minio.NoSuchKey || r.Code == "" && r.StatusCode == http.StatusNotFound:
		err = errors.Join(ErrNotFound, err)
	case r.StatusCode == http.StatusPreconditionFailed || r.StatusCode == http.StatusConflict:
		err = errors.Join(ErrExists, err)
	}
	return fmt.Errorf("%s %s: %w", what, name, err)
}

func (b bucket) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	content, _, _, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, failure("read from the store", name, err)
	}
	return content, nil
}

func (b bucket) Create(ctx context.Context, name string, content io.ReadSeeker) error {
	size, err := content.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = content.Seek(0, io.SeekStart)
	}
	if err = errors.Join(checkName(name), err); err != nil {
		return err
	}
	o := minio.PutObjectOptions{DisableMultipart: true, ContentType: "application/octet-stream"}
	o.SetMatchETagExcept("*")
	if _, err = b.client.Client.PutObject(ctx, b.name, b.prefix+name, content, size, o); err != nil {
		return failure("write to the store", name, err)
	}
	return nil
}

func (b bucket) List(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	for o := range b.client.Client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true}) {
		if o.Err != nil {
			return nil, failure("list the store", prefix, o.Err)
		}
		names = append(names, strings.TrimPrefix(o.Key, b.prefix))
	}
	slices.Sort(names)
	return names, ctx.Err()
}
