package checkpoint

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/abilities"
)

func (m *manifest) shares() map[string]map[string]*shardPart {
	files := make(map[string]map[string]*shardPart, len(m.ranks))
	for name := range m.ranks {
		files[name] = map[string]*shardPart{}
	}
	for name, c := range m.cuts {
		for i := range c.Parts {
			p := &c.Parts[i]
			of := files[shareName(p.Rank)]
			if of == nil {
				of = map[string]*shardPart{}
				files[shareName(p.Rank)] = of
			}
			of[partName(name, p.Start, c.Part)] = &shardPart{name: name, of: c, place: p}
		}
	}
	return files
}

type shardPart struct {
	name  string
	of    *shardedTensor
	place *shardPlace
	at    int64
}

func (m *manifest) checkSharded() error {
	if m.format != shardedFormat {
		return nil
	}
	if len(m.cuts) == 0 {
		return errors.New("no tensor is sharded")
	}
	parts := 0
	for _, name := range sortedKeys(m.cuts) {
		c := m.cuts[name]
		if _, twice := m.sums[name]; twice {
			return fmt.Errorf("tensor %q is listed both as whole and as sharded", name)
		}
		if err := c.check(); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		if parts += len(c.Parts); parts > tensorLimit {
			return fmt.Errorf("more than %d parts of tensors: %w", tensorLimit, safetensors.ErrLimit)
		}
	}
	files := m.shares()
	for _, file := range sortedKeys(files) {
		parts := files[file]
		sum, ok := m.ranks[file]
		if rank, ours := shareRank(file); !ok || !ours || file != shareName(rank) {
			return fmt.Errorf("%q is not the file name of its rank", file)
		}
		size := sum.HeaderSize + int64(4*len(parts))
		for name, p := range parts {
			n, err := p.of.part(name, p.place.Start).ByteSize()
			if err != nil || n > sum.Size {
				return fmt.Errorf("%s: the part %q takes %d bytes, the file %d: %w", file, name, n, sum.Size, safetensors.ErrLimit)
			}
			size += n
		}
		if sum.HeaderSize < 0 || size != sum.Size {
			return fmt.Errorf("%s: its parts take %d bytes with the header, the file %d", file, size, sum.Size)
		}
	}
	return nil
}

func (m *manifest) cutBytes() (bytes int64) {
	for _, c := range m.cuts {
		n, _ := c.whole("").ByteSize()
		bytes += n
	}
	return bytes
}

func sizesOfShares(open opener, dir string, m *manifest) error {
	for _, name := range sortedKeys(m.ranks) {
		path := dir + "/" + name
		file, err := openFile(open, path)
		if err != nil {
			return err
		}
		if err := errors.Join(checkSize(file, path, m.ranks[name]), file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// With keep, the tensors' Write assembles them.
func readShares(ctx context.Context, open opener, dir string, m *manifest, keep bool) ([]Tensor, error) {
	if err := sizesOfShares(open, dir, m); err != nil {
		return nil, err
	}
	files, parts := m.shares(), map[string][]*shardPart{}
	for _, name := range sortedKeys(m.ranks) {
		path := dir + "/" + name
		file, err := openFile(open, path)
		if err != nil {
			return nil, err
		}
		err = readShare(ctx, file, path, m.ranks[name], files[name])
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		for _, part := range sortedKeys(files[name]) {
			p := files[name][part]
			parts[p.name] = append(parts[p.name], p)
		}
	}
	if !keep {
		return nil, nil
	}
	var tensors []Tensor
	for name, c := range m.cuts {
		tensors = append(tensors, Tensor{Name: name, DType: c.DType, Dims: c.Dims, Write: func(w io.Writer) error {
			return c.writeWhole(w, open, dir, parts[name])
		}})
	}
	return tensors, nil
}

func (c *shardedTensor) writeWhole(w io.Writer, open opener, dir string, parts []*shardPart) error {
	size, err := c.whole("").ByteSize()
	if err != nil {
		return err
	}
	var whole []byte
	if to, ok := w.(abilities.MemoryWriter); ok {
		whole = to.AvailableBuffer()
	}
	if int64(cap(whole)) < size {
		whole = make([]byte, size)
	}
	whole = whole[:size]
	memory := make([]byte, size/int64(len(parts)))
	for _, p := range parts {
		path := dir + "/" + shareName(p.place.Rank)
		file, err := openFile(open, path)
		if err != nil {
			return err
		}
		n, err := file.ReadAt(memory, p.at)
		if n == len(memory) || err == io.EOF {
			err = nil
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
		if sum := crc(safetensors.Checksum(0).Update(memory[:n])); sum != p.place.Sum {
			return &DamagedError{path, partName(p.name, p.place.Start, c.Part), fmt.Errorf("the CRC-32C of bytes %d to %d is %v, %s says %v",
				p.at, p.at+int64(n)-1, sum, manifestName, p.place.Sum)}
		}
		c.paste(whole, memory, p.place.Start)
	}
	_, err = w.Write(whole)
	return err
}

func (c *Checkpoint) gathered() error {
	for i := range c.Tensors {
		t := &c.Tensors[i]
		if t.Write == nil {
			continue
		}
		size, err := t.tensor().ByteSize()
		if err != nil {
			return err
		}
		to := &room{ctx: context.Background(), memory: make([]byte, size)}
		if err := t.Write(to); err != nil {
			return err
		}
		t.Data, t.Write = to.memory, nil
	}
	return nil
}

func readShare(ctx context.Context, file file, path string, says stateSum, parts map[string]*shardPart) error {
	reader, err := openReader(ctx, file, path, says)
	if err != nil {
		return err
	}
	if reader.Len() != len(parts)+1 {
		return damaged(path, fmt.Errorf("%d tensors, %s has %d parts", reader.Len(), manifestName, len(parts)))
	}
	var sums []byte
	at := says.HeaderSize
	for h := range reader.Tensors() {
		size, err := h.ByteSize()
		if err != nil {
			return damagedFormat(path, err)
		}
		p := parts[h.Name]
		switch {
		case h.Name == sumsName:
			got, _, err := reader.Read(h.Name)
			if err != nil {
				return damagedFormat(path, err)
			}
			if !bytes.Equal(got, sums) {
				return &DamagedError{path, h.Name, fmt.Errorf("its bytes, from %d on, are not the checksums that %s has", at, manifestName)}
			}
		case p == nil || p.of.DType != h.DType || !slices.Equal(p.of.Part, h.Dims):
			return &DamagedError{path, h.Name, fmt.Errorf("not in %s", manifestName)}
		default:
			if _, err := (tensorPlace{h, at, size, p.place.Sum}).read(reader, path, false); err != nil {
				return err
			}
			p.at = at
			sums = binary.LittleEndian.AppendUint32(sums, uint32(p.place.Sum))
		}
		at += size
	}
	return nil
}
