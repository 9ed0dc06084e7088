package cost

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The counts match XLA's own analysis of the same programs, as printed by `lazo hlo` and by JAX's cost_analysis. XLA
// counts a loop's body once; see TestCount_loops for loops.
func TestCount_asXLA(t *testing.T) {
	for name, want := range map[string]struct{ flops, transcendentals float64 }{
		"cpu-dense.hlo": {727_969, 5_164}, "cpu-convolution.hlo": {2_171_457, 3_084}, "tpu-convolution.hlo": {112_052_496, 0}, "tpu-sharded.hlo": {59_491_584, 0},
	} {
		c := counted(t, fixture(t, name))
		require.InDelta(t, want.flops, c.FLOPs(), 4, name) // a TPU's value is a float32
		require.Equal(t, want.transcendentals, c.Transcendentals, name)
		require.Empty(t, c.Uncounted, name)
		require.Empty(t, c.Unknown, name)
	}
}

// The convolutions of a GPU's layer and of its gradients have the layer's three arrays in different roles.
func TestCount_cuDNN(t *testing.T) {
	forward := "f32[2,5,5,4]{3,2,1,0}"
	for target, line := range map[string]string{
		"__cudnn$convForward":        "(f32[2,5,5,4]{3,2,1,0}, u8[0]{0}) custom-call(%x, %k)",
		"__cudnn$convBackwardInput":  "(f32[2,5,5,3]{3,2,1,0}, u8[0]{0}) custom-call(%y, %k)",
		"__cudnn$convBackwardFilter": "(f32[3,3,3,4]{3,2,1,0}, u8[0]{0}) custom-call(%x, %y)",
	} {
		c := counted(t, program("%x = f32[2,5,5,3]{3,2,1,0} parameter(0)", "%k = f32[3,3,3,4]{3,2,1,0} parameter(1)", "%y = "+forward+" parameter(2)",
			"ROOT %r = "+line+`, window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, custom_call_target="`+target+`"`))
		require.Equal(t, 2.0*2*3*4*13*13, c.Matrix["f32"], target)
	}
	// The same network as in the CPU's fixture has the same products.
	require.Equal(t, counted(t, fixture(t, "cpu-convolution.hlo")).Matrix["f32"], counted(t, fixture(t, "gpu-convolution.hlo")).Matrix["f32"])
}

// A data-parallel step exchanges its gradients, 4 bytes per parameter, and the loss.
func TestCount_dataParallel(t *testing.T) {
	const parameters = 64*64 + 64 + 64*10 + 10
	for name, devices := range map[string]int{"tpu-data-parallel.hlo": 4, "gpu-data-parallel.hlo": 8} {
		c := counted(t, fixture(t, name), Axis{"data", devices})
		require.Equal(t, devices, c.Devices)
		bytes := 4.0 * (parameters + 1)
		require.Len(t, c.Exchanged, 1, name)
		e := c.Exchanged[0]
		require.Equal(t, Exchange{"all-reduce", "data", devices, bytes, e.Sent}, e, name)
		require.InDelta(t, 2*float64(devices-1)/float64(devices)*bytes, e.Sent, 1e-6, name)
	}
}

// TPU's compiler writes three copies of an overlapped collective, and a reduce-scatter as a fusion of an all-reduce and
// a slice.
func TestCount_sharded(t *testing.T) {
	c := counted(t, fixture(t, "tpu-sharded.hlo"), Axis{"data", 4})
	const weights1, weights2, rows = 256 * 512, 512 * 128, 64
	require.Equal(t, []Exchange{
		{"reduce-scatter", "data", 4, 4 * (weights1 + weights2), 3 * (weights1 + weights2)},
		{"all-to-all", "data", 4, 4 * rows * 512, 3 * rows * 512},
		// Weights are gathered as bfloat16, and so are the gradients of the last layer's output.
		{"all-gather", "data", 4, 2 * (weights1/4 + weights2/4 + rows*128), 2 * 3 * (weights1/4 + weights2/4 + rows*128)},
		{"all-reduce", "data", 4, 4 * (512 + 128 + 1), 1.5 * 4 * (512 + 128 + 1)},
	}, c.Exchanged)
}

func FuzzCount(f *testing.F) {
	for _, name := range []string{"tpu-loop.hlo", "tpu-convolution.hlo", "tpu-sharded.hlo", "cpu-dense.hlo"} {
		f.Add(fixture(f, name))
	}
	f.Add(program("%x = f32[64,32]{1,0} parameter(0)", "ROOT %s = f32[64,32]{1,0} all-to-all(%x), channel_id=1, replica_groups=mesh['a'=2,'b'=4] {'a','b'}, dimensions={0}"))
	f.Add(looped("", "%i.1, %n), direction=LT", "1", "%zero"))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Count(text, []Axis{{"data", 2}, {"model", 2}})
		if err != nil {
			return
		}
		for _, n := range []float64{c.FLOPs(), c.Bytes, c.Sent(), c.Transcendentals} {
			if !(n >= 0) {
				t.Fatalf("%+v", c)
			}
		}
	})
}
