package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Store is an object store, or the part of one that belongs to a single training run: whole objects by key. [OpenStore]
// keeps checkpoints there. A key is "step-000000001200/COMMIT", for example, or "END": letters, digits, and the
// characters of these. Package storetest tests implementations.
//
// All later calls, from anywhere, must see what was put or deleted, as in S3, Google Cloud Storage and Azure. Methods
// may be called concurrently. Errors should wrap the service's errors; the Folder adds what it was doing.
type Store interface {
	// Put creates or replaces the object with what write writes, atomically: no reader sees a part of it. When Put
	// returns nil, the object is durable. After an error the old or the new object may exist. If write fails, Put
	// returns its error.
	Put(ctx context.Context, key string, write func(io.Writer) error) error
	// ReadAt reads from the object as [io.ReaderAt] does: fewer bytes than len(p) only at its end, with [io.EOF]. A
	// missing object is fs.ErrNotExist.
	ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error)
	// Size returns the object's length in bytes. A missing object is fs.ErrNotExist.
	Size(ctx context.Context, key string) (int64, error)
	// Keys returns the keys of all objects in any order.
	Keys(ctx context.Context) ([]string, error)
	// Delete removes the object. A missing object is fs.ErrNotExist, or nil if the service does not report it.
	Delete(ctx context.Context, key string) error
}

// OpenStore opens an object store as [Open] opens a folder on a disk. name is for messages. The objects have the names
// and contents of the folder's files, so checkpoints can be copied between both. Processes that save together each put
// their own object, and rank 0 polls for those of the others. Close of the folder leaves the store open.
//
// A store has no atomic rename. COMMIT is therefore put last and deleted first. A step without COMMIT does not exist,
// and the next OpenStore or Save removes its objects. A failed save deletes what it has put.
//
// A store has no lock: a lease would need synchronized clocks. The user must make sure that only one process writes at
// a time, as a job scheduler usually does; two could remove each other's steps. Any number may read
// ([Options.ReadOnly]). Orbax has the same rule.
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
