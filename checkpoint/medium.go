package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// medium is where the checkpoints of a [Folder] lie: a disk, or a [Store]. Each has its own way to make and to remove a
// checkpoint so that none can be seen that is not whole. Names are those that place.String gives.
type medium interface {
	// names are those of the complete checkpoints; there may be others among them.
	names(ctx context.Context) ([]string, error)
	has(ctx context.Context, name string) (bool, error)
	// open opens a file of a checkpoint to be read; fs.ErrNotExist if it is not there.
	open(ctx context.Context, path string) (file, error)
	// put makes a checkpoint of a new name, durably. After an error it is not there.
	put(ctx context.Context, name string, writing writing) error
	// Of a checkpoint that several processes make: begin makes the temporary folder, where the medium has such, and
	// giveUp removes what was made; share makes the file of one of them, seen when it is whole and durable; mark, that
	// it will not come, with a text that may be lost.
	begin(ctx context.Context, temp string) error
	giveUp(ctx context.Context, name, temp string) error
	share(ctx context.Context, name, temp, file string, write func(io.Writer) error) error
	mark(ctx context.Context, name, temp, file, text string) error
	remove(ctx context.Context, names []string) error
	// clean removes what a process that died left, and what a removal left that failed.
	clean(ctx context.Context, removed func(name string)) error
	// note replaces a small file beside the checkpoints, and forget removes it; one that is not there is no error.
	note(ctx context.Context, name, text string) error
	forget(ctx context.Context, name string) error
	// close gives a lock back, too, if there is one. It leaves the files readable if that is wanted.
	close(readable bool) error
}

// file is an open file, to be read.
type file interface {
	io.ReaderAt
	io.Closer
	Size() (int64, error)
}

type opener func(path string) (file, error)

// creator makes a file of a checkpoint.
type creator func(name string, write func(io.Writer) error) error

// writing is a checkpoint on its way to a medium, in the order in which it asks for them.
type writing struct {
	// begun is the temporary folder that medium.begin made, "" if there is none yet.
	begun string
	// files makes all files but the last one, and gives the content of that, COMMIT. open reads those of other processes,
	// below dir.
	files func(create creator, open opener, dir string) (commit []byte, err error)
	// last is called when all is written and durable but not to be seen yet.
	last func() error
	// check reads all files back, in a folder of any name. It is nil if that is not wanted.
	check func(open opener, dir string) error
}

func bytesOf(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
}

// readNote reads a small file, "" if it is not there.
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

// noteLimit is the most that is read of one.
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
