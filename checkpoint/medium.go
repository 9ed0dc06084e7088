package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// medium stores the checkpoints of a [Folder]: on a disk, or in a [Store]. No reader sees an incomplete checkpoint.
// Names are those of place.String.
type medium interface {
	// names returns the names of all complete checkpoints, and maybe others.
	names(ctx context.Context) ([]string, error)
	has(ctx context.Context, name string) (bool, error)
	// open opens a file for reading. A missing file is fs.ErrNotExist.
	open(ctx context.Context, path string) (file, error)
	// put creates a checkpoint with a new name durably. After an error it does not exist.
	put(ctx context.Context, name string, writing writing) error
	// The next four serve a checkpoint of several processes. begin makes the temporary folder, if the medium has one.
	// giveUp removes everything. share writes one process's file, which becomes visible when it is complete and
	// durable. mark records that this file will not come; its text may be lost.
	begin(ctx context.Context, temp string) error
	giveUp(ctx context.Context, name, temp string) error
	share(ctx context.Context, name, temp, file string, write func(io.Writer) error) error
	mark(ctx context.Context, name, temp, file, text string) error
	remove(ctx context.Context, names []string) error
	// clean removes what a dead process or a failed removal left.
	clean(ctx context.Context, removed func(name string)) error
	// note replaces a small file next to the checkpoints. forget removes it; a missing file is no error.
	note(ctx context.Context, name, text string) error
	forget(ctx context.Context, name string) error
	// close also releases the lock, if there is one. With readable the files stay readable.
	close(readable bool) error
}

// file is a file opened for reading.
type file interface {
	io.ReaderAt
	io.Closer
	Size() (int64, error)
}

type opener func(path string) (file, error)

// creator creates a file of a checkpoint.
type creator func(name string, write func(io.Writer) error) error

// writing is a checkpoint to write. A medium uses its fields in this order.
type writing struct {
	// begun is the temporary folder of medium.begin, or "".
	begun string
	// files creates all files but COMMIT and returns the content of that. open reads the files of other processes in
	// dir.
	files func(create creator, open opener, dir string) (commit []byte, err error)
	// last is called when everything is durable but not visible yet.
	last func() error
	// check, if not nil, reads all files back from a folder of any name.
	check func(open opener, dir string) error
}

func bytesOf(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
}

// readNote reads a small file. It returns "" if there is none.
func readNote(open opener, name string) (text string, err error) {
	file, err := open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return "", err
	}
	memory := make([]byte, min(size, noteLimit))
	n, err := file.ReadAt(memory, 0)
	if err == io.EOF {
		err = nil
	}
	return string(memory[:n]), err
}

// noteLimit limits the bytes that readNote reads.
const noteLimit = 4096

func (w writing) readBack(open opener, dir string) error {
	if w.check == nil {
		return nil
	}
	if err := w.check(open, dir); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	return nil
}
