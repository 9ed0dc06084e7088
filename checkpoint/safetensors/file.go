package safetensors

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/lazo-ml/lazo/internal/regular"
)

// ReadFile reads a whole regular file: its tensors in the order of their bytes, their elements, and the metadata. It
// verifies the checksum, if any ([Reader.Verify]). Errors name the path; [errors.As] finds a [*FormatError].
func ReadFile(path string, limits Limits) (tensors []Tensor, elements [][]byte, metadata map[string]string, err error) {
	if tensors, elements, metadata, err = readFile(path, limits); err != nil {
		return nil, nil, nil, &fileError{path, err}
	}
	return tensors, elements, metadata, nil
}

type fileError struct {
	path string
	err  error
}

func (e *fileError) Error() string { return "safetensors: read " + e.path + ": " + e.Point() }

// Point is for errors that name the path themselves.
func (e *fileError) Point() string { return strings.TrimPrefix(e.err.Error(), "safetensors: ") }

func (e *fileError) Unwrap() error { return e.err }

func readFile(path string, limits Limits) (tensors []Tensor, elements [][]byte, metadata map[string]string, err error) {
	file, err := regular.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, nil, bare(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, nil, bare(err)
	}
	r, err := NewReader(file, info.Size(), limits)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := r.Verify(); err != nil {
		return nil, nil, nil, err
	}
	for t := range r.Tensors() {
		data, _, err := r.Read(t.Name)
		if err != nil {
			return nil, nil, nil, err
		}
		tensors, elements = append(tensors, t), append(elements, data)
	}
	return tensors, elements, r.Metadata(), nil
}

func bare(err error) error {
	if where := (*fs.PathError)(nil); errors.As(err, &where) {
		return where.Err
	}
	return err
}
