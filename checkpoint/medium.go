package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// medium stores the checkpoints of a [Folder], visible only when complete. Names are those of place.String.
type medium interface {
	// all complete checkpoints, and maybe others
	names(ctx context.Context) ([]string, error)
	has(ctx context.Context, name string) (bool, error)
	open(ctx context.Context, path string) (file, error)
	// After an error the checkpoint does not exist.
	put(ctx context.Context, name string, writing writing) error
	// For several processes: giveUp removes all, share writes one process's file, mark records a missing one.
	begin(ctx context.Context, temp string) error
	giveUp(ctx context.Context, name, temp string) error
	share(ctx context.Context, name, temp, file string, write func(io.Writer) error) error
	mark(ctx context.Context, name, temp, file, text string) error
	remove(ctx context.Context, names []string) error
	// removes remains of dead processes and failed removals
	clean(ctx context.Context, removed func(name string)) error
	note(ctx context.Context, name, text string) error
	forget(ctx context.Context, name string) error
	close(readable bool) error
}

type file interface {
	io.ReaderAt
	io.Closer
	Size() (int64, error)
}

type opener func(path string) (file, error)

type creator func(name string, write func(io.Writer) error) error

type writing struct {
	begun string
	// files creates all but COMMIT, its result. open reads other processes' files in dir.
	files func(create creator, open opener, dir string) (commit []byte, err error)
	// called when all is durable but not visible
	last  func() error
	check func(open opener, dir string) error
}

func bytesOf(text []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}
}

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
