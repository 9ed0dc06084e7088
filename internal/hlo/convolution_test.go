package hlo_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// Integers, which XLA does not convolve, and groups have the sums of a loop.
func TestConvolution_isTheSum(t *testing.T) {
	const batch, size, in, out, window = 2, 7, 4, 6, 3
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) []int32 {
		list := make([]int32, n)
		for i := range list {
			list[i] = r.Int32N(19) - 9
		}
		return list
	}
	for _, groups := range []int{1, 2} {
		x, kernel := draw(batch*size*in), draw(window*in/groups*out)
		for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Int32, dtypes.Int8} {
			const stride = 2
			places := (size-window)/stride + 1
			got := graph.MustExecOnce(open(t), func(x, kernel *graph.Node) *graph.Node {
				x = graph.ConvertDType(graph.Reshape(x, batch, size, in), dtype)
				kernel = graph.ConvertDType(graph.Reshape(kernel, window, in/groups, out), dtype)
				y := graph.Convolve(x, kernel).Strides(stride).NoPadding().ChannelGroupCount(groups).Done()
				return graph.Reshape(graph.ConvertDType(y, dtypes.Int32), -1)
			}, x, kernel).Value().([]int32)
			require.Len(t, got, batch*places*out)
			for b := range batch {
				for p := range places {
					for o := range out {
						sum := int32(0)
						group := o / (out / groups)
						for k := range window {
							for c := range in / groups {
								sum += x[(b*size+p*stride+k)*in+group*in/groups+c] * kernel[(k*(in/groups)+c)*out+o]
							}
						}
						if dtype == dtypes.Int8 {
							sum = int32(int8(sum)) // wraps around
						}
						require.Equal(t, sum, got[(b*places+p)*out+o], "%s, %d groups: %d, %d, %d", dtype, groups, b, p, o)
					}
				}
			}
		}
	}
}

// On XLA's CPU, and only there, a kernel's gradient with a large window has rows of zeros more.
func TestConvGeneral_largeWindows(t *testing.T) {
	rows := []struct {
		name              string
		cpu               bool
		batch, size, taps int
		channels, outputs int
		dtype             dtypes.DType
		changed           bool
	}{
		{"of many channels", true, 128, 14, 3, 32, 64, dtypes.Float32, true},
		{"another device", false, 128, 14, 3, 32, 64, dtypes.Float32, false},
		{"of one channel", true, 128, 28, 3, 1, 32, dtypes.Float32, true},
		{"few outputs", true, 32, 28, 3, 1, 16, dtypes.Float32, false},
		{"a small window", true, 8, 7, 3, 32, 64, dtypes.Float32, false},
		{"a wide kernel", true, 128, 14, 9, 32, 64, dtypes.Float32, false},
		{"other numbers", true, 128, 14, 3, 32, 64, dtypes.Float64, false},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var text string
			b := programOf(hlo.New("convolution", func(m *hlo.Module) (compute.Executable, error) {
				text = m.Text()
				return &executable{module: m}, nil
			}).ForCPU(row.cpu))
			x, err := b.Parameter("x", shapes.Make(row.dtype, row.batch, row.size, row.size, row.channels), nil)
			require.NoError(t, err)
			g, err := b.Parameter("g", shapes.Make(row.dtype, row.batch, row.size, row.size, row.outputs), nil)
			require.NoError(t, err)
			pad := [2]int{row.taps / 2, row.taps / 2}
			gradient, err := b.ConvGeneral(x, g, ofKernel, nil, [][2]int{pad, pad}, nil, nil, 1, 1)
			require.NoError(t, err)
			shape, err := b.OpShape(gradient)
			require.NoError(t, err)
			require.Equal(t, []int{row.taps, row.taps, row.channels, row.outputs}, shape.Dimensions)
			_, err = b.Finish([]compute.Value{gradient})
			require.NoError(t, err)
			require.Equal(t, row.changed, strings.Count(text, "stablehlo.pad") == 2, text)
		})
	}
}

var ofKernel = compute.ConvolveAxesConfig{
	InputBatch: 3, InputChannels: 0, InputSpatial: []int{1, 2},
	KernelInputChannels: 0, KernelOutputChannels: 3, KernelSpatial: []int{1, 2},
	OutputBatch: 2, OutputChannels: 3, OutputSpatial: []int{0, 1},
}

// Whole numbers, whose sums are exact in each order.
func TestConvGeneral_largeWindowsAreTheSum(t *testing.T) {
	const batch, size, channels, outputs = 32, 12, 32, 64
	r := rand.New(rand.NewPCG(3, 4))
	draw := func(n int) []float32 {
		list := make([]float32, n)
		for i := range list {
			list[i] = float32(r.IntN(9) - 4)
		}
		return list
	}
	x, g := draw(batch*size*size*channels), draw(batch*size*size*outputs)
	gradient := func(x, g *graph.Node) *graph.Node {
		x, g = graph.Reshape(x, batch, size, size, channels), graph.Reshape(g, batch, size, size, outputs)
		return graph.Reshape(graph.ConvGeneral(x, g, ofKernel, nil, [][2]int{{1, 1}, {0, 2}}, nil, nil, 1, 1), -1)
	}
	on := open(t)
	got := graph.MustExecOnce(forCPU{on}, gradient, x, g).Value().([]float32)
	require.Equal(t, 2, strings.Count(on.last.Text(), "stablehlo.pad"))
	require.Equal(t, graph.MustExecOnce(on, gradient, x, g).Value().([]float32), got)
}
