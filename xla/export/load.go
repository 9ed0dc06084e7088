package export

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
)

// Load reads a folder of [Program.Write] and does not trust it: it checks sizes before it allocates memory, all
// checksums, and the manifest. Wrong content is [ErrDamaged]. [Program.Compile] checks the text. Compile only programs
// of people whose code you trust.
func Load(dir string) (*Program, error) {
	p, err := load(dir)
	if err != nil {
		return nil, fmt.Errorf("export: load %s: %w", dir, err)
	}
	return p, nil
}

func load(dir string) (*Program, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%w: it is a file, expected a folder of Program.Write", syscall.ENOTDIR)
	}
	on, err := vfs.OS(dir)
	if err != nil {
		return nil, err
	}
	p, err := read(on)
	return p, errors.Join(err, on.Close())
}

// The error may quote the file.
func damaged(name string, err error) error {
	return fmt.Errorf("%s: %w: %.500w", name, ErrDamaged, err)
}

func read(on vfs.FS) (*Program, error) {
	text, err := readFile(on, manifestName, manifestLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("it has no %s: expected an exported folder: %w", manifestName, err)
	} else if err != nil {
		return nil, err
	}
	sum, err := readFile(on, sumName, int64(len(sumOf(nil))))
	switch {
	case errors.Is(err, fs.ErrNotExist): // older folders lack it
	case err != nil:
		return nil, err
	case string(sum) != sumOf(text):
		return nil, damaged(manifestName, fmt.Errorf("its SHA-256 is %.64s, %s says %.64q", sumOf(text), sumName, sum))
	}
	m, err := parseManifest(text)
	if errors.Is(err, errNewer) {
		return nil, fmt.Errorf("%s: %w", manifestName, err)
	} else if err != nil {
		return nil, damaged(manifestName, err)
	}
	p := &Program{Name: m.Name, StableHLO: m.StableHLO, Lazo: m.Lazo}
	if p.Inputs, err = decodeValues(m.Inputs); err == nil {
		p.Outputs, err = decodeValues(m.Outputs)
	}
	if err != nil {
		return nil, damaged(manifestName, err)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		if err := verify(on, name, m.Files[name]); err != nil {
			return nil, err
		}
	}
	program, err := readFile(on, programName, maxText)
	if err != nil {
		return nil, err
	}
	p.Text = string(program)
	for name := range m.Files {
		size, ok := sizeIn(name)
		if !ok {
			continue
		}
		text, err := readFile(on, name, maxText)
		if err != nil {
			return nil, err
		}
		if p.Sizes == nil {
			p.Sizes = map[int]string{}
		}
		p.Sizes[size] = string(text)
	}
	if err := p.check(); err != nil { // before allocating memory
		return nil, damaged(manifestName, err)
	}
	if _, ok := m.Files[weightsName]; ok {
		if p.Weights, err = readTensors(on, weightsName, p.inputs(State)); err != nil {
			return nil, err
		}
	}
	if _, ok := m.Files[exampleName]; ok {
		all, err := readTensors(on, exampleName, p.example())
		if err != nil {
			return nil, err
		}
		p.Example = splitExample(all)
	}
	return p, nil
}

func (p *Program) example() map[string]Value {
	want := map[string]Value{}
	for name, v := range p.inputs(Batch) {
		want["inputs/"+name] = v
	}
	for _, v := range p.Outputs {
		want["outputs/"+v.Name] = v
	}
	return want
}

func splitExample(all map[string]*tensors.Tensor) *Example {
	e := &Example{map[string]*tensors.Tensor{}, map[string]*tensors.Tensor{}}
	for name, t := range all {
		if input, ok := strings.CutPrefix(name, "inputs/"); ok {
			e.Inputs[input] = t
		} else {
			e.Outputs[strings.TrimPrefix(name, "outputs/")] = t
		}
	}
	return e
}

func open(on vfs.FS, name string, limit int64) (vfs.File, int64, error) {
	f, err := on.Open(name)
	if err != nil {
		return nil, 0, err
	}
	size, err := f.Size()
	if err == nil && size > limit {
		err = damaged(name, fmt.Errorf("%d bytes, expected at most %d", size, limit))
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, size, nil
}

func readFile(on vfs.FS, name string, limit int64) ([]byte, error) {
	f, size, err := open(on, name, limit)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.NewSectionReader(f, 0, size))
	return text, errors.Join(err, f.Close())
}

func verify(on vfs.FS, name string, want file) error {
	f, size, err := open(on, name, want.Bytes)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, io.NewSectionReader(f, 0, size))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if got := fmt.Sprintf("%x", sum.Sum(nil)); size != want.Bytes || got != want.SHA256 {
		return damaged(name, fmt.Errorf("%d bytes of SHA-256 %s, %s says %d of %.64q", size, got, manifestName, want.Bytes, want.SHA256))
	}
	return nil
}

func readTensors(on vfs.FS, name string, want map[string]Value) (map[string]*tensors.Tensor, error) {
	f, err := on.Open(name)
	if err != nil {
		return nil, err
	}
	values, err := tensorsOf(f, want)
	if format := (*safetensors.FormatError)(nil); errors.As(err, &format) || errors.Is(err, errOther) {
		err = damaged(name, err)
	}
	return values, errors.Join(err, f.Close())
}

var errOther = errors.New("different from the manifest")

func tensorsOf(f vfs.File, want map[string]Value) (map[string]*tensors.Tensor, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	r, err := safetensors.NewReader(f, size, safetensors.Limits{})
	if err != nil {
		return nil, err
	}
	if r.Len() != len(want) {
		return nil, fmt.Errorf("%w: %d tensors, expected %d", errOther, r.Len(), len(want))
	}
	values := make(map[string]*tensors.Tensor, len(want))
	for t := range r.Tensors() {
		v, ok := want[t.Name]
		if !ok {
			return nil, fmt.Errorf("%w: a tensor %.40q", errOther, t.Name)
		}
		if dtype, err := inFile(v.Shape.DType); err != nil || dtype != t.DType || !slices.Equal(t.Dims, v.Shape.Dimensions) {
			return nil, fmt.Errorf("%w: %.40q is %v%v, expected %s", errOther, t.Name, t.DType, t.Dims, v.Shape)
		}
		into := tensors.FromShape(v.Shape)
		var readErr error
		if err := into.MutableBytes(func(data []byte) { _, readErr = r.ReadInto(t.Name, data) }); err != nil {
			return nil, err
		}
		if readErr != nil {
			return nil, readErr
		}
		if t.DType == safetensors.Bool {
			if err := checkBools(into, t.Name); err != nil {
				return nil, err
			}
		}
		values[t.Name] = into
	}
	return values, nil
}

// Other bytes are not valid Go bools.
func checkBools(t *tensors.Tensor, name string) error {
	var wrong error
	err := t.ConstBytes(func(data []byte) {
		if i := slices.IndexFunc(data, func(b byte) bool { return b > 1 }); i >= 0 {
			wrong = fmt.Errorf("%w: %.40q: bool %d is 0x%02x", errOther, name, i, data[i])
		}
	})
	return errors.Join(err, wrong)
}
