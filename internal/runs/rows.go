package runs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/loop"
)

const tries = 5

func steady(path string, read func(*os.File, int64) (part, error)) (p part, err error) {
	for range tries {
		var changed bool
		if p, changed, err = once(path, read); err == nil || !changed {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return p, err
}

func once(path string, read func(*os.File, int64) (part, error)) (p part, changed bool, err error) {
	file, err := regular.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return p, false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	before, err := file.Stat()
	if err != nil {
		return p, false, err
	}
	if p, err = read(file, before.Size()); err != nil {
		after, statErr := os.Stat(path)
		changed = statErr == nil && (!os.SameFile(before, after) || before.Size() != after.Size() || before.ModTime() != after.ModTime())
	}
	return p, changed, err
}

// rowsOf reads whole lines: the last may be being written.
func rowsOf(file *os.File, size int64) (p part, err error) {
	end, err := lastLine(file, size)
	if err != nil {
		return p, err
	}
	begin := make([]byte, 1)
	if _, err := file.ReadAt(begin, 0); err != nil {
		return p, err
	}
	read := records.ReadCSV
	if begin[0] == jsonStart[0] {
		read = records.ReadJSON
	}
	if end == 0 {
		return p, nil
	}
	p.values = values{}
	err = read(io.NewSectionReader(file, 0, end), func(r *records.Row) error {
		if err := r.Check(); err != nil {
			return err
		}
		p.at = loop.Elapsed{Steps: max(p.at.Steps, r.Steps), Epochs: max(p.at.Epochs, r.Epochs), Time: max(p.at.Time, r.Time)}
		for i, column := range r.Columns {
			p.values.add(column, r.Steps, r.Numbers[i])
		}
		return nil
	})
	return p, err
}

func lastLine(file io.ReaderAt, size int64) (int64, error) {
	chunk := make([]byte, 64<<10)
	for end := size; end > 0; {
		start := max(0, end-int64(len(chunk)))
		part := chunk[:end-start]
		if _, err := file.ReadAt(part, start); err != nil && err != io.EOF {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}
