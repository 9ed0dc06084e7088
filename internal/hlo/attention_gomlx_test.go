package hlo_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers/attention"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// lowerOnly is a backend that only lowers, for CUDA if widestHead is not 0.
type lowerOnly struct {
	*device
	widestHead int
}

func (d lowerOnly) Capabilities() compute.Capabilities {
	c := hlo.Capabilities()
	c.Operations[compute.OpTypeFusedScaledDotProductAttention] = d.widestHead > 0
	c.Operations[compute.OpTypeFusedScaledDotProductAttentionVJP] = d.widestHead > 0
	return c
}

func (d lowerOnly) Builder(name string) compute.Builder {
	return hlo.New(name, func(m *hlo.Module) (compute.Executable, error) { d.last = m; return &executable{module: m}, nil }).ForCUDA(d.widestHead)
}

// GoMLX's attention and its gradient become two cuDNN calls on CUDA. Where cuDNN does not support the attention, the
// program is the one of other devices.
func TestAttention_ofGoMLX(t *testing.T) {
	checkpoint := false
	lower := func(widestHead int, kind dtypes.DType, options attention.CoreOptions) *hlo.Module {
		d := lowerOnly{&device{}, widestHead}
		g := graph.NewGraph(d, "attention")
		x := graph.Parameter(g, "x", shapes.Make(kind, 2, 16, 4, 8))
		in := x
		if checkpoint {
			in = x.Checkpoint()
		}
		output, _ := attention.Core(in, in, in, attention.LayoutBSHD, options)
		if checkpoint {
			output = output.StopCheckpoint()
		}
		gradient := graph.Gradient(graph.ReduceAllSum(graph.Square(output)), x)
		require.NoError(t, g.Compile(output, gradient[0]))
		return d.last
	}
	causal := attention.CoreOptions{UseCausalMask: true}
	p := calledBy(t, lower(128, dtypes.BFloat16, causal).Text())
	require.Equal(t, `"__cudnn$fmhaSoftmax"`, p.calls[0].target)
	require.Equal(t, `"__cudnn$fmhaSoftmaxBackward"`, p.calls[1].target)
	require.Equal(t, `"__cudnn$fmhaSoftmax", output 1`, p.calls[1].operands[3])
	require.Equal(t, `"__cudnn$fmhaSoftmax", output 0 by 0, 2, 1, 3`, p.calls[1].operands[5])
	for _, row := range []struct {
		kind    dtypes.DType
		options attention.CoreOptions
	}{
		{dtypes.Float32, causal}, {dtypes.BFloat16, attention.CoreOptions{DisableFusion: true}}, {dtypes.BFloat16, attention.CoreOptions{ScoreSoftCap: 30}},
	} {
		cuda, other := lower(128, row.kind, row.options), lower(0, row.kind, row.options)
		require.Equal(t, other.Text(), cuda.Text())
		require.Equal(t, other.Ops, cuda.Ops)
		require.NotContains(t, other.Text(), "custom_call")
	}
	checkpoint = true
	again := lower(128, dtypes.BFloat16, causal)
	require.Equal(t, 2, again.Ops[compute.OpTypeFusedScaledDotProductAttention], "forwards, and again for the gradient")
	require.Equal(t, 1, again.Ops[compute.OpTypeFusedScaledDotProductAttentionVJP])
}

// plainFormula computes attention in plain Go, for arrays of [batch, time, heads, width], with the part of each query
// and key.
func plainFormula(query, key, value []float64, heads, keyHeads int, sees func(batch, query, key int) bool) (output []float64) {
	const batch, time, width = 2, 3, 2
	output = make([]float64, len(query))
	for b := range batch {
		for i := range time {
			for h := range heads {
				at := ((b*time+i)*heads + h) * width
				sum, of := 0.0, h/(heads/keyHeads)
				var shares [time]float64
				for j := range time {
					if !sees(b, i, j) {
						continue
					}
					dot := 0.0
					for k := range width {
						dot += query[at+k] * key[((b*time+j)*keyHeads+of)*width+k]
					}
					shares[j] = math.Exp(dot / math.Sqrt(width))
					sum += shares[j]
				}
				for j := range time {
					for k := range width {
						if shares[j] != 0 {
							output[at+k] += shares[j] / sum * value[((b*time+j)*keyHeads+of)*width+k]
						}
					}
				}
			}
		}
	}
	return output
}

// GoMLX's attention and its gradient match the plain formula and its differences, and the program has no custom call.
func TestAttention_onCPU(t *testing.T) {
	d := open(t)
	const heads, keyHeads = 4, 2
	var in [3][]float64
	for i, n := range []int{2 * 3 * heads * 2, 2 * 3 * keyHeads * 2, 2 * 3 * keyHeads * 2} {
		for j := range n {
			in[i] = append(in[i], math.Sin(float64(7*i+3*j+1)))
		}
	}
	lengths := [2]int{2, 3}
	for name, row := range map[string]struct {
		options func(g *graph.Graph) attention.CoreOptions
		sees    func(batch, query, key int) bool
	}{
		"plain":  {func(*graph.Graph) attention.CoreOptions { return attention.CoreOptions{} }, func(_, _, _ int) bool { return true }},
		"causal": {func(*graph.Graph) attention.CoreOptions { return attention.CoreOptions{UseCausalMask: true} }, func(_, i, j int) bool { return j <= i }},
		"lengths": {func(g *graph.Graph) attention.CoreOptions {
			return attention.CoreOptions{KVSeqLen: graph.Const(g, []int32{int32(lengths[0]), int32(lengths[1])})}
		}, func(b, _, j int) bool { return j < lengths[b] }},
	} {
		t.Run(name, func(t *testing.T) {
			outputs, err := graph.CallOnceN(d, func(query, key, value *graph.Node) []*graph.Node {
				output, _ := attention.Core(query, key, value, attention.LayoutBSHD, row.options(query.Graph()))
				return append([]*graph.Node{output}, graph.Gradient(graph.ReduceAllSum(graph.Square(output)), query, key, value)...)
			}, tensors.FromFlatDataAndDimensions(in[0], 2, 3, heads, 2), tensors.FromFlatDataAndDimensions(in[1], 2, 3, keyHeads, 2), tensors.FromFlatDataAndDimensions(in[2], 2, 3, keyHeads, 2))
			require.NoError(t, err)
			formula := func() []float64 { return plainFormula(in[0], in[1], in[2], heads, keyHeads, row.sees) }
			require.InDeltaSlice(t, formula(), tensors.MustCopyFlatData[float64](outputs[0]), 1e-12)
			loss := func() (sum float64) {
				for _, x := range formula() {
					sum += x * x
				}
				return sum
			}
			const step = 1e-5
			for i, flat := range in {
				gradient := tensors.MustCopyFlatData[float64](outputs[1+i])
				for j, keep := range flat {
					flat[j] = keep + step
					up := loss()
					flat[j] = keep - step
					require.InDelta(t, (up-loss())/(2*step), gradient[j], 1e-8, "operand %d, element %d", i, j)
					flat[j] = keep
				}
			}
			require.NotContains(t, d.last.Text(), "custom_call")
			for kind := range d.last.Ops {
				require.False(t, strings.HasPrefix(kind.String(), "Fused"), kind)
			}
		})
	}
}
