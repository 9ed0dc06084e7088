package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Store is an object store, or one run's part of it, for [OpenStore]. Keys are like "step-000000001200/COMMIT". Package
// storetest tests implementations. Each change must be visible to later calls from anywhere. Methods may be called
// concurrently. Errors should wrap the service's.
type Store interface {
	// Put creates or replaces an object atomically with what write writes, durably when it returns nil. After an error,
	// perhaps write's, the old or the new object may exist.
	Put(ctx context.Context, key string, write func(io.Writer) error) error
	// ReadAt is [io.ReaderAt]'s: it reads less than len(p) only at the end, with [io.EOF]. A missing object is
	// fs.ErrNotExist.
	ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error)
	// Size is in bytes. A missing object is fs.ErrNotExist.
	Size(ctx context.Context, key string) (int64, error)
	// Keys returns all keys in any order.
	Keys(ctx context.Context) ([]string, error)
	// Delete removes an object. A missing one is fs.ErrNotExist, or nil if the service does not report it.
	Delete(ctx context.Context, key string) error
}

// OpenStore opens a store as [Open] opens a folder, with the same files: checkpoints can be copied between the two.
// name is for messages. In a job, each process puts its own object; rank 0 polls for the others. Close leaves the store
// open.
//
// COMMIT is put last and deleted first: a step without it is incomplete, and ignored. A failed save deletes its
// objects. There is no lock: only one process may write at a time.
func OpenStore(ctx context.Context, store Store, name string, options Options) (*Folder, error) {
	var f *Folder
	err := errors.New("no store given")
	if store != nil {
		f, err = openMedium(ctx, objects{store}, name, options)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: open %s: %w", name, err)
	}
	return f, nil
}
