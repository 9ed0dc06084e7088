package pretrained

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/regular"
)

const ggufExt = ".gguf"

// ggufFile is a header. Values are uint64, int64, float32, float64, bool, string, []string or ggufNumbers.
type ggufFile struct {
	values  map[string]any
	tensors map[string]stored
}

// readGGUF checks that the tensors lie in the file one after another. The file is untrusted: allocations are bounded by
// the bytes that are read.
func readGGUF(path string) (*ggufFile, error) {
	f, err := regular.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	g, err := readOpenedGGUF(path, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return g, nil
}

type ggufTensor struct {
	name     string
	dims     []int // of rows first, unlike in the file
	kind     uint64
	at, size int64
}

func readOpenedGGUF(path string, f *os.File) (*ggufFile, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	r := &ggufReader{from: bufio.NewReaderSize(f, 1<<16), left: min(info.Size(), mostText)}
	if magic := r.bytes(4); string(magic) != "GGUF" && r.err == nil {
		return nil, fmt.Errorf("the file begins with %q, expected \"GGUF\"", magic)
	}
	if version := r.number(4); (version < 2 || version > 3) && r.err == nil {
		return nil, fmt.Errorf("the version is %d, expected 2 or 3, little-endian", version)
	}
	tensors, values := r.number(8), r.number(8)
	g := &ggufFile{values: map[string]any{}, tensors: map[string]stored{}}
	for range r.count(values, 13, 1<<16) {
		key := r.text()
		if _, twice := g.values[key]; twice {
			r.fail("the key %s is listed twice", listed.Quoted(key))
		}
		if g.values[key] = r.value(r.number(4)); r.err != nil {
			return nil, fmt.Errorf("the value of %s: %w", listed.Quoted(key), r.err)
		}
	}
	var list []ggufTensor
	for range r.count(tensors, 32, 1<<17) {
		t := r.tensor()
		if r.err != nil {
			return nil, r.err
		}
		list = append(list, t)
	}
	if r.err != nil {
		return nil, r.err
	}
	alignment := int64(32)
	if a, there := g.values["general.alignment"]; there {
		n, _ := a.(uint64)
		if alignment = int64(n); n < 8 || n > 1<<20 || n%8 != 0 {
			return nil, fmt.Errorf("general.alignment is %v, expected a multiple of 8 up to %d", a, 1<<20)
		}
	}
	begin := (r.read + alignment - 1) / alignment * alignment
	file := unopened{path, info.Size(), info.ModTime()}
	slices.SortFunc(list, func(a, b ggufTensor) int { return cmp.Compare(a.at, b.at) })
	end := int64(0)
	for _, t := range list {
		switch {
		case t.at < end || t.at%alignment != 0:
			return nil, fmt.Errorf("the tensor %s begins at %d, expected a multiple of %d after the end of another, %d", listed.Quoted(t.name), t.at, alignment, end)
		case t.at > info.Size()-begin || t.size > info.Size()-begin-t.at:
			return nil, fmt.Errorf("the tensor %s has %d bytes at %d, expected at most the file's %d: is it complete?", listed.Quoted(t.name), t.size, begin+t.at, info.Size())
		case g.tensors[t.name].rows != nil:
			return nil, fmt.Errorf("the tensor %s is listed twice", listed.Quoted(t.name))
		}
		end = t.at + t.size
		t.at += begin
		g.tensors[t.name] = t.stored(file)
	}
	return g, nil
}

func (t ggufTensor) stored(file io.ReaderAt) stored {
	row := t.size / int64(t.dims[0])
	return unpacked(stored{Tensor: safetensors.Tensor{Name: t.name, DType: blocks[t.kind].dtype, Dims: t.dims}, kind: t.kind, raw: func(from, to int) ([]byte, error) {
		if from < 0 || to < from || to > t.dims[0] {
			return nil, fmt.Errorf("the rows %d to %d of %d", from, to, t.dims[0])
		}
		data := make([]byte, int64(to-from)*row)
		_, err := file.ReadAt(data, t.at+int64(from)*row)
		return data, err
	}})
}

func unpacked(s stored) stored {
	s.rows = func(from, to int) ([]byte, error) {
		data, err := s.raw(from, to)
		if err != nil {
			return nil, err
		}
		return numbersOf(s.kind, data), nil
	}
	return s
}

// numbersOf blocks are float32 if quantized.
func numbersOf(kind uint64, data []byte) []byte {
	b := blocks[kind]
	if b.numbers == nil {
		return data
	}
	out := make([]byte, 0, len(data)/b.bytes*b.elements*4)
	var block [256]float32
	for ; len(data) > 0; data = data[b.bytes:] {
		b.numbers(data[:b.bytes], block[:b.elements])
		for _, x := range block[:b.elements] {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
		}
	}
	return out
}

// ggufReader's values are zero after an error.
type ggufReader struct {
	from       io.Reader
	read, left int64
	err        error
}

func (r *ggufReader) fail(format string, values ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, values...)
	}
}

func (r *ggufReader) bytes(n uint64) []byte {
	if r.err == nil && n > uint64(r.left) {
		r.fail("the header ends within a value of %d bytes at byte %d, or has more than %d", n, r.read, mostText)
	}
	if r.err != nil {
		return nil
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(r.from, data); err != nil {
		r.fail("at byte %d: %w", r.read, err)
		return nil
	}
	r.read, r.left = r.read+int64(n), r.left-int64(n)
	return data
}

func (r *ggufReader) number(bytes int) uint64 {
	var wide [8]byte
	copy(wide[:], r.bytes(uint64(bytes)))
	return binary.LittleEndian.Uint64(wide[:])
}

func (r *ggufReader) text() string { return string(r.bytes(r.number(8))) }

func (r *ggufReader) count(n, bytes, most uint64) uint64 {
	if r.err == nil && (n > uint64(r.left)/bytes || n > most) {
		r.fail("the header announces %d values at byte %d, expected at most %d, and no more than fit into the %d bytes after it", n, r.read, most, r.left)
	}
	if r.err != nil {
		return 0
	}
	return n
}

const ggufText, ggufList = 8, 9

var ggufSizes = map[uint64]int{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

type ggufNumbers struct {
	kind uint64
	data []byte
}

func ggufNumber(kind uint64, data []byte) any {
	var wide [8]byte
	copy(wide[:], data)
	n := binary.LittleEndian.Uint64(wide[:])
	switch kind {
	case 1:
		return int64(int8(n))
	case 3:
		return int64(int16(n))
	case 5:
		return int64(int32(n))
	case 11:
		return int64(n)
	case 6:
		return math.Float32frombits(uint32(n))
	case 12:
		return math.Float64frombits(n)
	case 7:
		return n != 0
	}
	return n
}

func (r *ggufReader) value(kind uint64) any {
	switch {
	case kind == ggufText:
		return r.text()
	case kind != ggufList && ggufSizes[kind] == 0:
		r.fail("its type is %d, expected 0 to 12", kind)
		return nil
	case kind != ggufList:
		return ggufNumber(kind, r.bytes(uint64(ggufSizes[kind])))
	}
	of := r.number(4)
	if of == ggufText {
		var all []string
		for range r.count(r.number(8), 8, mostText) {
			all = append(all, r.text())
		}
		return all
	}
	if ggufSizes[of] == 0 {
		r.fail("it is a list of the type %d, expected texts, numbers or truth values", of)
		return nil
	}
	return ggufNumbers{of, r.bytes(r.count(r.number(8), uint64(ggufSizes[of]), mostText) * uint64(ggufSizes[of]))}
}

func (r *ggufReader) tensor() (t ggufTensor) {
	t.name = r.text()
	rank := r.number(4)
	if (rank < 1 || rank > 4) && r.err == nil {
		r.fail("the tensor %s has %d axes, expected 1 to 4", listed.Quoted(t.name), rank)
	}
	for range r.count(rank, 8, 4) {
		n := r.number(8)
		if (n < 1 || n > mostSize) && r.err == nil {
			r.fail("the tensor %s has an axis of %d, expected 1 to %d", listed.Quoted(t.name), n, mostSize)
		}
		t.dims = append(t.dims, int(n))
	}
	t.kind = r.number(4)
	if at := r.number(8); at > 1<<62 {
		r.fail("the tensor %s is at %d", listed.Quoted(t.name), at)
	} else {
		t.at = int64(at)
	}
	if r.err != nil {
		return t
	}
	b, known := blocks[t.kind]
	if !known {
		var names []string
		for _, b := range blocks {
			names = append(names, b.name)
		}
		slices.Sort(names)
		r.fail("the tensor %s is of the type %d, expected one of %s: others are not implemented", listed.Quoted(t.name), t.kind, strings.Join(names, ", "))
		return t
	}
	if t.dims[0]%b.elements != 0 || b.elements > 1 && rank == 1 {
		r.fail("the tensor %s has rows of %d numbers in %s, expected a multiple of %d, in at least 2 axes", listed.Quoted(t.name), t.dims[0], b.name, b.elements)
		return t
	}
	t.size = int64(t.dims[0] / b.elements * b.bytes)
	const most = 1 << 50 // no file has as many bytes
	for _, n := range t.dims[1:] {
		if t.size > most/int64(n) {
			r.fail("the tensor %s has more than %d bytes", listed.Quoted(t.name), int64(most))
			return t
		}
		t.size *= int64(n)
	}
	slices.Reverse(t.dims)
	return t
}

// ggufOuter and ggufInner are modules of files by their names in transformers: outside of layers, and in them.
var ggufOuter = map[string]string{"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}

var ggufInner = map[string]string{
	"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
	"attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "ffn_norm": "post_attention_layernorm",
	"ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}

// named has transformers' names. Others stay.
func (g *ggufFile) named() (map[string]stored, error) {
	all, from := map[string]stored{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(g.tensors)) {
		t := g.tensors[name]
		dot := max(strings.LastIndexByte(name, '.'), 0)
		module, end := name[:dot], name[dot:]
		if to, known := ggufOuter[module]; known {
			t.Name = to + end
		} else if rest, ok := strings.CutPrefix(module, "blk."); ok {
			number, inner, _ := strings.Cut(rest, ".")
			if to, known := ggufInner[inner]; known {
				t.Name = "model.layers." + number + "." + to + end
			}
		}
		if other, twice := from[t.Name]; twice {
			return nil, fmt.Errorf("the tensors %s and %s are both %s of transformers, expected one", listed.Quoted(other), listed.Quoted(name), listed.Quoted(t.Name))
		}
		all[t.Name], from[t.Name] = t, name
	}
	return all, nil
}

func ggufName(name string) string {
	dot := max(strings.LastIndexByte(name, '.'), 0)
	module, end := name[:dot], name[dot:]
	names, before := ggufOuter, ""
	if rest, ok := strings.CutPrefix(module, "model.layers."); ok {
		number, inner, _ := strings.Cut(rest, ".")
		names, before, module = ggufInner, "blk."+number+".", inner
	}
	for to, from := range names {
		if from == module {
			return before + to + end
		}
	}
	return ""
}

func ggufValue[T any](g *ggufFile, key string, errs *[]error) (v T, there bool) {
	any, there := g.values[key]
	v, ok := any.(T)
	if there && !ok {
		*errs = append(*errs, fmt.Errorf("%s is of the type %T, expected %T", key, any, v))
	}
	return v, there
}
