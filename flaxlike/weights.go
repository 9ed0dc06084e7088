package flaxlike

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/managed"
)

// Save writes the model to one file, from which [Open] makes it in any program: the network's variables and, as
// metadata, the network with its settings, losses and metrics by name, the policy, class names, the preparation of the
// data and the [Card]. The format is safetensors; variables have names such as "0/kernel".
//
// The file lacks the optimizer's state, which a checkpoint has ([checkpoint.Resume]), and a network that is code
// without a name. An existing file is replaced atomically.
func (m *Model) Save(path string) error {
	if err := m.save(path); err != nil {
		return fmt.Errorf("flaxlike: save %s: %w", path, graphs.Inner(err))
	}
	return nil
}

func (m *Model) save(path string) error {
	of := m.seen.changes.Load()
	content, err := m.content()
	if err != nil {
		return err
	}
	if of != m.seen.changes.Load() { // weights read during training are unknown
		of = unknown
	}
	described, err := m.describe(of)
	if err != nil {
		return err
	}
	var tensors []safetensors.Tensor
	values := map[string][]byte{}
	for _, t := range content.Tensors {
		tensors = append(tensors, safetensors.Tensor{Name: t.Name, DType: t.DType, Dims: t.Dims})
		values[t.Name] = t.Data
	}
	safetensors.Sort(tensors)
	var sum safetensors.Checksum // precedes the elements in the file
	for _, t := range tensors {
		sum = sum.Update(values[t.Name])
	}
	return replace(path, func(f *os.File) error {
		buffered := bufio.NewWriter(f)
		w, err := safetensors.NewWriter(buffered, tensors, map[string]string{"format": "lazo", safetensors.ChecksumKey: sum.String(),
			descriptionKey: described, descriptionSum: safetensors.Checksum(0).Update([]byte(described)).String()})
		if err != nil {
			return err
		}
		for _, t := range tensors {
			if _, err := w.Write(t.Name, values[t.Name]); err != nil {
				return err
			}
		}
		return errors.Join(w.Close(), buffered.Flush())
	})
}

func replace(path string, write func(*os.File) error) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return errors.New("it is a folder, expected the name of a file in one, as weights.safetensors")
	}
	if path == "" {
		return errors.New("the name of the file is empty")
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".saving-*")
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		return fmt.Errorf("a file in the folder %s: %w", filepath.Dir(path), of.Err)
	}
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = errors.Join(f.Chmod(0o644), f.Sync())
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Load sets the network's variables to those of a file of [Model.Save], or none after an error. The file must have
// exactly these variables, with the same shapes and dtypes. The model must be built ([Model.Init]). The optimizer's
// state does not change. Values damaged since Save are a [safetensors.ErrChecksum], except in files of other programs.
func (m *Model) Load(ctx context.Context, path string) error {
	if err := m.load(ctx, path); err != nil {
		return fmt.Errorf("flaxlike: load %s: %w", path, graphs.Inner(err))
	}
	return nil
}

func (m *Model) load(ctx context.Context, path string) error {
	if _, err := m.built(); err != nil {
		return err
	}
	content, _, err := readTensors(path)
	if err != nil {
		return err
	}
	return m.take(ctx, content)
}

func (m *Model) take(ctx context.Context, content *checkpoint.Checkpoint) error {
	needed, err := m.needed(content)
	if err != nil {
		return err
	}
	return m.change(func() error {
		return unlike(m.state.Transfer(ctx, content, func(name string) string {
			if name = short(name); needed[name] {
				return name
			}
			return ""
		}), content)
	})
}

func (m *Model) needed(content *checkpoint.Checkpoint) (map[string]bool, error) {
	variables, err := m.built()
	if err != nil {
		return nil, err
	}
	needed := map[string]bool{}
	for _, v := range variables {
		needed[short(v.name)] = true
	}
	for _, t := range content.Tensors {
		if !needed[t.Name] && len(content.Tensors) > len(needed) {
			return nil, fmt.Errorf("the file has %q, which the model does not have: is the file from another model?", t.Name)
		}
	}
	return needed, nil
}

func unlike(err error, content *checkpoint.Checkpoint) error {
	var unlike *managed.MismatchError
	if !errors.As(err, &unlike) {
		return err
	}
	v := unlike.Mismatches[0]
	if v.Saved == "" {
		var names []string
		for _, t := range content.Tensors {
			names = append(names, fmt.Sprintf("%q", t.Name))
		}
		return fmt.Errorf("the file has no %q, which the model needs: is the file from another model?\n  the file has: %s", short(v.Name), strings.Join(names, ", "))
	}
	return fmt.Errorf("%q is %s in the file, and %s in the model: is the file from another model?", short(v.Name), v.Saved, v.Model)
}

func readTensors(path string) (*checkpoint.Checkpoint, map[string]string, error) {
	list, elements, metadata, err := safetensors.ReadFile(path, safetensors.Limits{})
	if err != nil {
		return nil, nil, err
	}
	var c checkpoint.Checkpoint
	for i, t := range list {
		c.Tensors = append(c.Tensors, checkpoint.Tensor{Name: short(t.Name), DType: t.DType, Dims: t.Dims, Data: elements[i]})
	}
	return &c, metadata, nil
}

func short(name string) string { return strings.TrimPrefix(name, "/"+modelScope+"/") }
