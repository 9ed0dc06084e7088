package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Store is an object store, or a part of one that belongs to a single training run: whole objects by key. [OpenStore]
// keeps checkpoints there. A key is made of a checkpoint's name, a slash and the name of a file, as
// "step-000000001200/COMMIT", or it is "END": letters, digits, and the signs of these. Package storetest has the tests
// that each implementation must pass.
//
// Whatever was put or deleted must be what all later calls see, from everywhere: so it is in today's S3, Google Cloud
// Storage and Azure. Methods may be called from any goroutine. Errors should wrap the service's; OpenStore's Folder
// adds what it was doing.
type Store interface {
	// Put makes the object of a key of what write gives, whole or not at all: nobody sees a part of it, and when Put
	// returns nil the object is durable. An object that is there already is replaced. After an error, which must be
	// write's own if it is that which failed, there may be the old object or the new one.
	Put(ctx context.Context, key string, write func(io.Writer) error) error
	// ReadAt is that of [io.ReaderAt] for the object of a key: less than p only at its end, with [io.EOF]. One that is
	// not there is fs.ErrNotExist.
	ReadAt(ctx context.Context, key string, p []byte, offset int64) (int, error)
	// Size is the length of the object of a key in bytes; fs.ErrNotExist if there is none.
	Size(ctx context.Context, key string) (int64, error)
	// Keys gives the keys of all objects, in any order.
	Keys(ctx context.Context) ([]string, error)
	// Delete removes the object of a key; fs.ErrNotExist if there is none (also nil, where the service does not know).
	Delete(ctx context.Context, key string) error
}

// OpenStore opens an object store as [Open] does a folder of the disk; name is for messages. The objects are the files
// that Open's folder has, so that what is copied from the one can be read in the other.
//
// Of processes that save together each puts its own object, and rank 0 looks for those of the others until all are
// there.
//
// A store has no atomic rename. So COMMIT is the object that is put last, and deleted first: a step without one is not
// there, and its other objects are removed by the next OpenStore or Save. A save that fails deletes what it had put.
//
// A store has no lock that goes with a process that died, and a lease needs clocks that agree. So there is none: that
// one process at a time writes is for the user to see to (a job scheduler does, as a rule), and two can remove each
// other's steps. Any number may read ([Options.ReadOnly]). Orbax has the same rule.
//
// Close of the folder leaves the store open.
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
