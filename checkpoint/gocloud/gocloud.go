package gocloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/lazo-ml/lazo/checkpoint"
)

// Store is a bucket, or blob.PrefixedBucket, of one run as a [checkpoint.Store]. The caller closes it. Errors are
// package blob's; a missing object is also fs.ErrNotExist.
//
// Package fileblob does not sync: a power loss may lose saves. On a disk use checkpoint.Open.
type Store struct{ Bucket *blob.Bucket }

var _ checkpoint.Store = Store{}

// Put creates an object.
func (s Store) Put(ctx context.Context, key string, write func(io.Writer) error) (err error) {
	inner, discard := context.WithCancel(ctx)
	defer discard()
	w, err := s.Bucket.NewWriter(inner, key, &blob.WriterOptions{ContentType: "application/octet-stream", DisableContentTypeDetection: true})
	if err != nil {
		return named("put", key, err)
	}
	written := false
	defer func() {
		if !written { // even after a panic: Close alone would create the object
			discard()
			_ = w.Close()
		}
	}()
	if err := write(w); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	written = true
	return named("put", key, w.Close())
}

// ReadAt is that of [checkpoint.Store].
func (s Store) ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error) {
	r, err := s.Bucket.NewRangeReader(ctx, key, offset, int64(len(p)), nil)
	if err != nil {
		if size, sizeErr := s.Size(ctx, key); sizeErr == nil && offset >= size { // some services refuse a range after the end
			return 0, io.EOF
		}
		return 0, named("read", key, err)
	}
	n, err := io.ReadFull(r, p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	if closeErr := r.Close(); err == nil {
		err = closeErr
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = named("read", key, err)
	}
	return n, err
}

// Size is in bytes.
func (s Store) Size(ctx context.Context, key string) (int64, error) {
	a, err := s.Bucket.Attributes(ctx, key)
	if err != nil {
		return 0, named("size", key, err)
	}
	return a.Size, nil
}

// Keys returns all keys.
func (s Store) Keys(ctx context.Context) ([]string, error) {
	var keys []string
	for list := s.Bucket.List(nil); ; {
		object, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return keys, nil
		}
		if err != nil {
			return nil, named("list", "", err)
		}
		keys = append(keys, object.Key)
	}
}

// Delete removes an object.
func (s Store) Delete(ctx context.Context, key string) error {
	return named("delete", key, s.Bucket.Delete(ctx, key))
}

func named(op, key string, err error) error {
	if err == nil {
		return nil
	}
	if gcerrors.Code(err) == gcerrors.NotFound {
		err = errors.Join(fs.ErrNotExist, err)
	}
	return fmt.Errorf("gocloud: %s %q: %w", op, key, err)
}
