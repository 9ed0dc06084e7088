package safetensors

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/internal/listed"
)

// Tensor describes a tensor.
type Tensor struct {
	// Name is any UTF-8 text except "__metadata__". Do not use a file's as a path.
	Name  string
	DType DType
	// Dims are the axes' lengths, outermost first, 0 or more; a scalar has none.
	Dims []int
}

// ByteSize returns the elements' size in bytes.
func (t Tensor) ByteSize() (int64, error) {
	size, err := t.byteSize()
	if err != nil {
		return 0, fmt.Errorf("safetensors: tensor %s: %w", listed.Quoted(t.Name), err)
	}
	return size, nil
}

func (t Tensor) byteSize() (int64, error) {
	if !t.DType.valid() {
		return 0, fmt.Errorf("%v is not a dtype of the format", t.DType)
	}
	return byteSize(t.DType, t.Dims)
}

// Sort sorts tensors as the Python package does: the widest dtypes first, then by name. Each then starts at a multiple
// of its element size, for readers that map it into memory.
func Sort(tensors []Tensor) {
	slices.SortFunc(tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(b.DType, a.DType), cmp.Compare(a.Name, b.Name))
	})
}

// Checksum is a CRC-32C (Castagnoli).
type Checksum uint32

// String returns eight hexadecimal digits.
func (c Checksum) String() string { return fmt.Sprintf("%08x", uint32(c)) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ChecksumKey is the metadata entry of the [Checksum] of all elements, for files that no manifest covers
// ([Reader.Verify]).
const ChecksumKey = "lazo.crc32c"

// Update returns the checksum of the previous data followed by data. It starts from 0.
func (c Checksum) Update(data []byte) Checksum {
	return Checksum(crc32.Update(uint32(c), castagnoli, data))
}

// Limits bound what a header may claim; 0 or less is the default, which a [Writer] uses.
type Limits struct {
	Header   int64 // bytes; 100,000,000, as in the Python package
	Tensors  int   // 1,000,000
	Rank     int   // axes; 32
	Name     int   // bytes; 4096
	Metadata int   // entries; 100,000
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Header:   min(cmp.Or(max(l.Header, 0), 100_000_000), math.MaxInt),
		Tensors:  min(cmp.Or(max(l.Tensors, 0), 1_000_000), math.MaxInt32), // header.byName is int32
		Rank:     cmp.Or(max(l.Rank, 0), 32),
		Name:     cmp.Or(max(l.Name, 0), 4096),
		Metadata: cmp.Or(max(l.Metadata, 0), 100_000),
	}
}
