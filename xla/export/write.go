package export

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// Write writes the program into a new folder, atomically and durably: after an error there is none. An existing folder
// is fs.ErrExist. A killed process leaves a folder .export-… next to it.
func (p *Program) Write(dir string) error {
	err := p.check()
	if err == nil {
		err = p.writeDir(dir)
	}
	if err != nil {
		return fmt.Errorf("export: write %s: %w", dir, err)
	}
	return nil
}

func (p *Program) writeDir(dir string) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	parent, name := filepath.Split(dir)
	if name == "" {
		return fmt.Errorf("%s is a root: %w", dir, fs.ErrExist)
	}
	if err := vfs.MkdirAll(filepath.Clean(parent)); err != nil {
		return err
	}
	on, err := vfs.OS(parent)
	if err != nil {
		return err
	}
	return errors.Join(p.write(on, name), on.Close())
}

func (p *Program) write(on vfs.FS, name string) error {
	if _, err := on.Stat(name); err == nil {
		return fmt.Errorf("it already exists: %w; remove it, or give another name", fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	temp := ".export-" + rand.Text()
	if err := on.Mkdir(temp); err != nil {
		return err
	}
	err := p.fill(on, temp)
	if err == nil {
		err = on.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, discard(on, temp))
	}
	if err := on.SyncDir("."); err != nil {
		// Rename first: a visible folder is always complete.
		return errors.Join(err, on.Rename(name, temp), on.SyncDir("."), discard(on, temp))
	}
	return nil
}

func (p *Program) fill(on vfs.FS, dir string) error {
	files := map[string]file{}
	create := func(name string, write func(io.Writer) error) error {
		f, err := createFile(on, dir+"/"+name, write)
		files[name] = f
		return err
	}
	err := create(programName, func(w io.Writer) error {
		_, err := io.WriteString(w, p.Text)
		return err
	})
	for _, size := range slices.Sorted(maps.Keys(p.Sizes)) {
		if err == nil {
			err = create(sizedName(size), func(w io.Writer) error {
				_, err := io.WriteString(w, p.Sizes[size])
				return err
			})
		}
	}
	if err == nil && p.Weights != nil {
		err = create(weightsName, func(w io.Writer) error { return writeTensors(w, p.Weights) })
	}
	if err == nil && p.Example != nil {
		err = create(exampleName, func(w io.Writer) error { return writeTensors(w, p.Example.all()) })
	}
	if err != nil {
		return err
	}
	m, err := newManifest(p, files)
	if err != nil {
		return err
	}
	text, err := m.encode()
	if err != nil {
		return err
	}
	// The manifest does not list these.
	for _, f := range [][2]string{{sumName, sumOf(text)}, {manifestName, string(text)}} {
		if _, err := createFile(on, dir+"/"+f[0], func(w io.Writer) error { _, err := io.WriteString(w, f[1]); return err }); err != nil {
			return err
		}
	}
	return on.SyncDir(dir)
}

func (e *Example) all() map[string]*tensors.Tensor {
	all := map[string]*tensors.Tensor{}
	for name, t := range e.Inputs {
		all["inputs/"+name] = t
	}
	for name, t := range e.Outputs {
		all["outputs/"+name] = t
	}
	return all
}

func createFile(on vfs.FS, path string, write func(io.Writer) error) (file, error) {
	f, err := on.Create(path)
	if err != nil {
		return file{}, err
	}
	counted := &digest{w: f, sum: sha256.New()}
	err = write(counted)
	if err == nil {
		err = f.Sync()
	}
	return file{counted.n, fmt.Sprintf("%x", counted.sum.Sum(nil))}, errors.Join(err, f.Close())
}

type digest struct {
	w   io.Writer
	sum hash.Hash
	n   int64
}

func (d *digest) Write(data []byte) (int, error) {
	n, err := d.w.Write(data)
	d.sum.Write(data[:n])
	d.n += int64(n)
	return n, err
}

func writeTensors(to io.Writer, values map[string]*tensors.Tensor) error {
	var list []safetensors.Tensor
	for _, name := range slices.Sorted(maps.Keys(values)) {
		s := values[name].Shape()
		dtype, err := inFile(s.DType)
		if err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
		list = append(list, safetensors.Tensor{Name: name, DType: dtype, Dims: s.Dimensions})
	}
	safetensors.Sort(list)
	w, err := safetensors.NewWriter(to, list, nil)
	if err != nil {
		return err
	}
	for _, t := range list {
		var writeErr error
		if err := values[t.Name].ConstBytes(func(data []byte) { _, writeErr = w.Write(t.Name, data) }); err != nil {
			return fmt.Errorf("%q: %w", t.Name, err)
		}
		if writeErr != nil {
			return writeErr
		}
	}
	return w.Close()
}

func discard(on vfs.FS, dir string) error {
	names, err := on.ReadDir(dir)
	for _, name := range names {
		err = errors.Join(err, on.Remove(dir+"/"+name))
	}
	return errors.Join(err, on.Remove(dir))
}
