package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"slices"
	"sync"
	"syscall"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/shield"
)

func (t *Tensor) tensor() safetensors.Tensor {
	return safetensors.Tensor{Name: t.Name, DType: t.DType, Dims: t.Dims}
}

func (t *Tensor) writeTo(w io.Writer) error {
	if t.Write == nil {
		_, err := w.Write(t.Data)
		return err
	}
	return shield.Do(func() error { return t.Write(w) })
}

func inOrder(tensors []Tensor) []Tensor {
	return slices.SortedStableFunc(slices.Values(tensors), func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(b.DType, a.DType), cmp.Compare(a.Name, b.Name))
	})
}

func (d *draft) start(w io.Writer) (*safetensors.Writer, error) {
	headers := make([]safetensors.Tensor, len(d.tensors))
	for i := range d.tensors {
		headers[i] = d.tensors[i].tensor()
	}
	return safetensors.NewWriter(w, headers, nil)
}

func (d *draft) checkTensors() error {
	if _, err := d.start(io.Discard); err != nil {
		return err
	}
	return checkSizes(d.tensors)
}

func checkSizes(tensors []Tensor) error {
	for _, t := range tensors {
		switch size, err := t.tensor().ByteSize(); {
		case err != nil:
			return err
		case t.Write == nil && int64(len(t.Data)) != size:
			return fmt.Errorf("tensor %q: Data has %d bytes, dims %v of %v take %d", t.Name, len(t.Data), t.Dims, t.DType, size)
		}
	}
	return nil
}

func (d *draft) writeState(w io.Writer) error {
	counted := &counter{w: w}
	file, err := d.start(counted)
	if err != nil {
		return err
	}
	d.manifest.state.HeaderSize, d.manifest.state.HeaderSum = counted.n, crc(file.HeaderChecksum())
	d.manifest.sums = make(map[string]crc, len(d.tensors))
	for _, t := range d.tensors {
		sum, err := file.WriteFunc(t.Name, t.writeTo)
		if err != nil {
			return err
		}
		d.manifest.sums[t.Name] = crc(sum)
	}
	d.manifest.state.Size = counted.n
	return file.Close()
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

func readState(ctx context.Context, file file, path string, m *manifest, keep bool) ([]Tensor, error) {
	reader, err := openReader(ctx, file, path, m.state)
	if err != nil {
		return nil, err
	}
	if reader.Len() != len(m.sums) {
		return nil, damaged(path, fmt.Errorf("%d tensors, %s has %d", reader.Len(), manifestName, len(m.sums)))
	}
	at := m.state.HeaderSize
	places := make([]tensorPlace, 0, reader.Len())
	for h := range reader.Tensors() {
		size, err := h.ByteSize()
		if err != nil {
			return nil, damagedFormat(path, err)
		}
		want, ok := m.sums[h.Name]
		if !ok {
			return nil, &DamagedError{path, h.Name, fmt.Errorf("not in %s", manifestName)}
		}
		places = append(places, tensorPlace{h, at, size, want})
		at += size
	}
	var tensors []Tensor
	if keep {
		tensors = make([]Tensor, len(places))
	}
	readers := 1
	if _, far := file.(*object); !far && m.state.Size >= parallelSize {
		readers = min(2, runtime.GOMAXPROCS(0))
	}
	return tensors, inParallel(readers, len(places), func(i int) error {
		t, err := places[i].read(reader, path, keep)
		if keep && err == nil {
			tensors[i] = t
		}
		return err
	})
}

func openReader(ctx context.Context, file file, path string, says stateSum) (*safetensors.Reader, error) {
	if err := checkSize(file, path, says); err != nil {
		return nil, err
	}
	reader, err := safetensors.NewReader(&patientReader{ctx, file}, says.Size, safetensors.Limits{})
	if err != nil {
		return nil, damagedFormat(path, err)
	}
	if sum := crc(reader.HeaderChecksum()); sum != says.HeaderSum {
		return nil, damaged(path, fmt.Errorf("the CRC-32C of the header, bytes 0 to %d, is %v, %s says %v",
			says.HeaderSize-1, sum, manifestName, says.HeaderSum))
	}
	return reader, nil
}

// the smallest file that two goroutines read
const parallelSize = 32 << 20

// The error is the lowest i's.
func inParallel(goroutines, n int, do func(i int) error) (err error) {
	var mu sync.Mutex
	next, failed := 0, n
	begin := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next <= failed
	}
	work := func() {
		for i, ok := begin(); ok; i, ok = begin() {
			if doErr := do(i); doErr != nil {
				mu.Lock()
				if i < failed {
					failed, err = i, doErr
				}
				mu.Unlock()
			}
		}
	}
	var group sync.WaitGroup
	for range goroutines - 1 {
		group.Go(work)
	}
	work()
	group.Wait()
	return err
}

type tensorPlace struct {
	header   safetensors.Tensor
	at, size int64
	want     crc
}

func (p tensorPlace) read(reader *safetensors.Reader, path string, keep bool) (Tensor, error) {
	t, sum, err := readTensor(reader, p.header, keep)
	switch {
	case err != nil:
		return Tensor{}, damagedFormat(path, err)
	case crc(sum) != p.want:
		return Tensor{}, &DamagedError{path, p.header.Name, fmt.Errorf("the CRC-32C of bytes %d to %d is %v, %s says %v",
			p.at, p.at+p.size-1, sum, manifestName, p.want)}
	}
	return t, nil
}

func readTensor(reader *safetensors.Reader, h safetensors.Tensor, keep bool) (Tensor, safetensors.Checksum, error) {
	if !keep {
		sum, err := reader.Copy(io.Discard, h.Name)
		return Tensor{}, sum, err
	}
	data, sum, err := reader.Read(h.Name)
	return Tensor{Name: h.Name, DType: h.DType, Dims: h.Dims, Data: data}, sum, err
}

func damagedFormat(path string, err error) error {
	if format, ok := errors.AsType[*safetensors.FormatError](err); ok {
		return &DamagedError{path, format.Tensor, err}
	}
	return err
}

func checkSize(file file, path string, says stateSum) error {
	size, err := file.Size()
	if err == nil && size != says.Size {
		return damaged(path, fmt.Errorf("%d bytes, %s says %d", size, manifestName, says.Size))
	}
	return err
}

func openFile(open opener, path string) (file, error) {
	file, err := open(path)
	for _, wrong := range []error{fs.ErrNotExist, syscall.EISDIR, syscall.EINVAL, syscall.ENOTDIR} {
		if errors.Is(err, wrong) {
			return nil, damaged(path, err)
		}
	}
	return file, err
}

type patient struct {
	ctx context.Context
	w   io.Writer
}

func (p *patient) Write(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	return p.w.Write(b)
}

type patientReader struct {
	ctx context.Context
	r   io.ReaderAt
}

func (p *patientReader) ReadAt(b []byte, offset int64) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	return p.r.ReadAt(b, offset)
}
