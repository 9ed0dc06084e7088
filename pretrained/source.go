package pretrained

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/regular"
)

type stored struct {
	safetensors.Tensor
	rows func(from, to int) ([]byte, error) // of the first axis; all of a scalar
	// raw are rows in blocks of a kind of GGUF.
	raw  func(from, to int) ([]byte, error)
	kind uint64
}

const (
	weightsFile = "model.safetensors"
	indexFile   = "model.safetensors.index.json"
	mostText    = 64 << 20
	mostShards  = 10_000
)

// readTensors reads headers alone.
func readTensors(ctx context.Context, folder string) (map[string]stored, error) {
	tensors := map[string]stored{}
	_, err := os.Stat(filepath.Join(folder, weightsFile))
	if err == nil {
		return tensors, readHeader(filepath.Join(folder, weightsFile), tensors)
	}
	text, err := regular.Read(filepath.Join(folder, indexFile), mostText)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the folder has neither %s nor %s: save the model in this form, as by model.save_pretrained(folder) of transformers", weightsFile, indexFile)
	}
	if err != nil {
		return nil, err
	}
	fields, err := object(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", indexFile, err)
	}
	c, index := &config{file: indexFile, fields: fields}, map[string]string{}
	if c.has("weight_map") && c.decode("weight_map", &index) != nil {
		c.fail("weight_map", "an object of files by the names of tensors")
		return nil, c.err
	}
	shards := map[string]bool{}
	for name, file := range index {
		if file != filepath.Base(file) || !filepath.IsLocal(file) || filepath.Ext(file) != ".safetensors" {
			return nil, fmt.Errorf("%s: the tensor %q is in %q, expected a file of the folder whose name ends with .safetensors", indexFile, name, file)
		}
		shards[file] = true
	}
	if len(shards) == 0 || len(shards) > mostShards {
		return nil, fmt.Errorf("%s lists %d files, expected 1 to %d", indexFile, len(shards), mostShards)
	}
	for _, file := range slices.Sorted(maps.Keys(shards)) {
		in := map[string]stored{}
		if err := errors.Join(ctx.Err(), readHeader(filepath.Join(folder, file), in)); err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(in)) {
			if listed := index[name]; listed != file {
				return nil, fmt.Errorf("%s has the tensor %q, which %s lists in %q, expected each tensor in one file", file, name, indexFile, listed)
			}
			tensors[name] = in[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(index)) {
		if _, there := tensors[name]; !there {
			return nil, fmt.Errorf("%s lists the tensor %q in %s, which does not contain it", indexFile, name, index[name])
		}
	}
	return tensors, nil
}

func readHeader(path string, into map[string]stored) error {
	f, err := regular.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	r, err := safetensors.NewReader(unopened{path, info.Size(), info.ModTime()}, info.Size(), safetensors.Limits{})
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	for t := range r.Tensors() {
		into[t.Name] = stored{Tensor: t, rows: func(from, to int) ([]byte, error) {
			var data []byte
			var err error
			if len(t.Dims) == 0 {
				data, _, err = r.Read(t.Name)
			} else {
				data, err = r.ReadRows(t.Name, from, to)
			}
			if err != nil {
				err = fmt.Errorf("%s: %w", filepath.Base(path), err)
			}
			return data, err
		}}
	}
	return nil
}

// unopened is opened for each read: nothing needs to be closed.
type unopened struct {
	path    string
	size    int64
	changed time.Time
}

func (u unopened) ReadAt(p []byte, at int64) (n int, err error) {
	f, err := regular.Open(u.path, os.O_RDONLY, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() != u.size || !info.ModTime().Equal(u.changed) {
		return 0, fmt.Errorf("%s has changed since Open: open the folder again", u.path)
	}
	return f.ReadAt(p, at)
}
