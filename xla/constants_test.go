package xla_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// large is a constant of 1.2 MB whose element i is first+i; text is the size limit in bytes of a program without it.
const (
	large    = 300_000
	longText = 10_000
)

func largeConstant(first float32) *tensors.Tensor {
	flat := make([]float32, large)
	for i := range flat {
		flat[i] = first + float32(i)
	}
	return tensors.FromFlatDataAndDimensions(flat, large)
}

// R40: a large constant is not part of the program's text, which XLA would take seconds to read. It is there however
// the program runs, and is freed with it.
func TestR40_largeConstantsStayOutOfTheProgram(t *testing.T) {
	r := plugintest.Uncached(t, xla.ClientOption("cpu_device_count", 2))
	before := pjrt.Live()
	scalar := shapes.Make(dtypes.Float32)
	constants := []*tensors.Tensor{largeConstant(0), largeConstant(1000)}
	// step adds elements 10 and 299,999 of the constant to the state, and does not use the first element of another.
	step := func(c *tensors.Tensor, change func(*xla.Built)) func(g *graph.Graph) xla.Built {
		return func(g *graph.Graph) xla.Built {
			graph.Neg(graph.Const(g, largeConstant(7))) // unused
			k := graph.Const(g, c)
			state := graph.Parameter(g, "state", scalar) // after the constant
			x := graph.Parameter(g, "x", scalar)
			picked := graph.Add(graph.Slice(k, graph.AxisElem(10)), graph.Slice(k, graph.AxisElem(large-1)))
			next := graph.Add(graph.Add(state, x), graph.Reshape(picked))
			built := xla.Built{Outputs: []*graph.Node{next, graph.Identity(x)}, InPlace: map[int]int{0: 0}, Host: []int{1}}
			change(&built)
			return built
		}
	}
	put := func(v float32) []compute.Buffer {
		b, err := r.BufferFromFlatData(0, []float32{v}, scalar)
		require.NoError(t, err)
		return []compute.Buffer{b, nil}
	}
	took := func(b compute.Buffer) float32 {
		got := []float32{0}
		require.NoError(t, b.ToFlatData(got))
		require.NoError(t, b.Finalize())
		return got[0]
	}
	const sum = 10 + large - 1

	// Two programs of the same text have their own constants.
	for _, block := range []int{0, 4} {
		for i, c := range constants {
			p, err := r.Compile("step", step(c, func(b *xla.Built) { b.Block = block }))
			require.NoError(t, err)
			require.Less(t, len(p.StableHLO()), longText)
			inputs, x := put(5), []float32{1}
			if block > 0 {
				x = []float32{1, 0, 0, 0}
			}
			for range 2 {
				outputs, err := p.Run(inputs, []any{x})
				require.NoError(t, err)
				require.NoError(t, outputs[0].Finalize())
			}
			require.Equal(t, float32(5+2+2*(sum+2000*i)), took(inputs[0]))
			signature, _, err := p.Signature()
			require.NoError(t, err)
			require.LessOrEqual(t, len(signature), 3, "the constant is no input of the caller's")
			defer func() { require.NoError(t, p.Close()) }()
		}
	}
	scan, err := r.Compile("scan", step(constants[1], func(b *xla.Built) {
		b.InPlace, b.Host, b.Scan = nil, nil, xla.Scan{Length: 3, Carry: map[int]int{0: 0}}
	}))
	require.NoError(t, err)
	given := []compute.Buffer{put(5)[0], put(1)[0]}
	outputs, err := scan.Run(given, nil)
	require.NoError(t, err)
	require.Equal(t, float32(5+3+3*(sum+2000)), took(outputs[0]))
	require.NoError(t, outputs[1].Finalize())
	for _, b := range given {
		require.NoError(t, b.Finalize())
	}
	require.NoError(t, scan.Close())

	// GoMLX's own executor, on its device, and in a closure.
	exec, err := graph.NewExec(r, func(x *graph.Node) *graph.Node {
		g := x.Graph()
		done := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
			return []*graph.Node{graph.LessThan(graph.Parameter(g, "x", scalar), graph.Const(g, float32(100)))}
		})
		add := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
			x := graph.Parameter(g, "x", scalar)
			return []*graph.Node{graph.Add(x, graph.Reshape(graph.Slice(graph.Const(g, constants[0]), graph.AxisElem(40))))}
		})
		return graph.While(done, add, x)[0]
	})
	require.NoError(t, err)
	for device := range 2 {
		got, _, err := exec.CallWithGraphOnDevice(compute.DeviceNum(device), float32(0))
		require.NoError(t, err)
		require.Equal(t, float32(120), got[0].Value())
		got[0].MustFinalizeAll()
	}
	exec.Finalize()
	t.Cleanup(func() { require.Equal(t, before.Buffers, pjrt.Live().Buffers) })
}
