package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

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
