package pretrained

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/nn"
)

// form has the variables of blocks of 32 numbers of a kind of GGUF. The first 2 bytes of each block are a scale, the
// others elements of a dtype. numbers returns float32 without the scale, [rows, blocks, 32] of [rows, blocks, bytes],
// in the order of the table blocks.
type form struct {
	dtype   dtypes.DType
	bytes   int
	numbers func(x *graph.Node) *graph.Node
}

var forms = map[uint64]form{
	8: {dtypes.Int8, 32, func(x *graph.Node) *graph.Node { return graph.ConvertDType(x, dtypes.Float32) }},
	2: {dtypes.Uint8, 16, func(x *graph.Node) *graph.Node {
		low, high := graph.BitwiseAnd(x, graph.Scalar(x.Graph(), dtypes.Uint8, 15)), graph.BitwiseShiftRightLogicalScalar(x, uint8(4))
		return graph.AddScalar(graph.ConvertDType(graph.Concatenate([]*graph.Node{low, high}, -1), dtypes.Float32), -8)
	}},
}

const (
	blocksEnd = "_blocks" // [rows, blocks, bytes]
	scalesEnd = "_scales" // float16 [rows, blocks]
)

func (w weight) packedValues(values map[string]checkpoint.Tensor) {
	f, rows, n := forms[w.stored.kind], w.dims[0], w.dims[1]/32
	file, _ := fileDType(dtypes.Float16)
	part := func(from, to int) func(out io.Writer) error { // of each block
		return func(out io.Writer) error {
			at := max(1, piece/(n*(f.bytes+2)))
			for first := 0; first < rows; first += at {
				data, err := w.stored.raw(first, min(first+at, rows))
				if err != nil {
					return err
				}
				kept := make([]byte, 0, len(data))
				for ; len(data) > 0; data = data[f.bytes+2:] {
					kept = append(kept, data[from:to]...)
				}
				if _, err := out.Write(kept); err != nil {
					return err
				}
			}
			return nil
		}
	}
	values[w.variable()+blocksEnd] = checkpoint.Tensor{DType: inFiles[f.dtype], Dims: []int{rows, n, f.bytes}, Write: part(2, f.bytes+2)}
	values[w.variable()+scalesEnd] = checkpoint.Tensor{DType: file, Dims: []int{rows, n}, Write: part(0, 2)}
}

var inFiles = map[dtypes.DType]safetensors.DType{dtypes.Int8: safetensors.I8, dtypes.Uint8: safetensors.U8}

func (n *Network) unpack(s *model.Scope, g *graph.Graph) {
	packed := map[string]weight{}
	for _, w := range n.weights {
		if w.packed {
			packed[model.JoinPath(s.Scope(), w.own)] = w
		}
	}
	if len(packed) == 0 {
		return
	}
	nn.Weights(s, g, func(at *model.Scope, name string) *graph.Node {
		w, is := packed[model.JoinPath(at.Scope(), name)]
		if !is {
			return nil
		}
		f, rows, n := forms[w.stored.kind], w.dims[0], w.dims[1]/32
		variable := func(end string, dtype dtypes.DType, dims ...int) *graph.Node {
			v := at.WithInitializer(graph.Zeros).VariableWithShape(name+end, shapes.Make(dtype, dims...))
			v.SetTrainable(false)
			return v.NodeValue(g)
		}
		q := variable(blocksEnd, f.dtype, rows, n, f.bytes)
		if step := layering.StepOf(q); step != nil && step.DType() != dtypes.Float32 {
			panic(fmt.Errorf("pretrained: Base.Quantized under a policy that computes in %s, which is not implemented: set Base.DType to BFloat16, without a policy", step.DType()))
		}
		x := f.numbers(q)
		scales := graph.ConvertDType(variable(scalesEnd, dtypes.Float16, rows, n), dtypes.Float32)
		x = graph.ConvertDType(graph.Reshape(graph.Mul(x, graph.ExpandAxes(scales, -1)), rows, n*32), w.dtype)
		if w.transposed {
			x = graph.Transpose(x, 0, 1)
		}
		return x
	})
}

func (w weight) unpacked(model Values) ([]byte, error) {
	f, rows, n := forms[w.stored.kind], w.dims[0], w.dims[1]/32
	q, err := valueOf(model, w.variable()+blocksEnd, f.dtype, rows, n, f.bytes)
	if err != nil {
		return nil, err
	}
	d, err := valueOf(model, w.variable()+scalesEnd, dtypes.Float16, rows, n)
	if err != nil {
		return nil, err
	}
	whole, inner := make([]byte, 0, rows*n*(f.bytes+2)), error(nil)
	err = d.ConstBytes(func(scales []byte) {
		inner = q.ConstBytes(func(elements []byte) {
			for i := range rows * n {
				whole = append(append(whole, scales[i*2:][:2]...), elements[i*f.bytes:][:f.bytes]...)
			}
		})
	})
	own, err2 := fileDType(w.dtype)
	if err = errors.Join(err, inner, err2); err != nil {
		return nil, err
	}
	data, err := converted(numbersOf(w.stored.kind, whole), safetensors.F32, own)
	if err != nil || !w.transposed {
		return data, err
	}
	var out bytes.Buffer
	err = writeColumns(&out, data, rows, n*32, own.Bits()/8)
	return out.Bytes(), err
}
