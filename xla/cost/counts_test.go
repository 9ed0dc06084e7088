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

func TestCount_byHand(t *testing.T) {
	// A dense layer: 64 rows, 32 numbers in, 16 out.
	c := counted(t, program("%x = f32[64,32]{1,0} parameter(0)", "%w = f32[32,16]{1,0} parameter(1)",
		"ROOT %y = f32[64,16]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"))
	require.Equal(t, map[string]float64{"f32": 2 * 64 * 32 * 16}, c.Matrix)
	require.Zero(t, c.Vector)
	require.Equal(t, 4.0*(64*32+32*16+64*16), c.Bytes)

	// A 3×3 convolution over 5×5 with padding: a corner meets 4 elements of the kernel, an edge 6, the inside 9, so
	// 13×13 pairs in total.
	c = counted(t, program("%x = f32[2,5,5,3]{3,2,1,0} parameter(0)", "%k = bf16[3,3,3,4]{3,2,1,0} parameter(1)",
		"ROOT %y = f32[2,5,5,4]{3,2,1,0} convolution(%x, %k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"))
	require.Equal(t, 2.0*2*3*4*13*13, c.Matrix["f32"])
	// A stride of 2, with groups: 3×3 outputs; each axis has 2+3+2 pairs.
	c = counted(t, program("%x = f32[2,5,5,4]{3,2,1,0} parameter(0)", "%k = f32[3,3,1,4]{3,2,1,0} parameter(1)",
		"ROOT %y = f32[2,3,3,4]{3,2,1,0} convolution(%x, %k), window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=4"))
	require.Equal(t, 2.0*2*1*4*7*7, c.Matrix["f32"])
	// The gradient as a convolution of a dilated input: zeros in between are no products. An axis of 3 is dilated to 5;
	// the kernel has 3.
	c = counted(t, program("%x = f32[1,3,1]{2,1,0} parameter(0)", "%k = f32[3,1,1]{2,1,0} parameter(1)",
		"ROOT %y = f32[1,5,1]{2,1,0} convolution(%x, %k), window={size=3 pad=1_1 lhs_dilate=2}, dim_labels=b0f_0io->b0f"))
	require.Equal(t, 2.0*(1+2+1+2+1), c.Matrix["f32"])

	// A sum over rows: 31 additions each.
	c = counted(t, program("%x = f32[64,32]{1,0} parameter(0)", "%z = f32[] constant(0)",
		"ROOT %y = f32[64]{0} reduce(%x, %z), dimensions={1}, to_apply=%sum"))
	require.Equal(t, 64.0*31, c.FLOPs())

	// Calls of vendors' libraries.
	c = counted(t, program("%x = f16[64,32]{1,0} parameter(0)", "%w = f16[32,16]{1,0} parameter(1)",
		`ROOT %y = (f16[64,16]{1,0}, s8[1024]{0}) custom-call(%x, %w), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"]}}}`))
	require.Equal(t, map[string]float64{"f16": 2 * 64 * 32 * 16}, c.Matrix)
	c = counted(t, program("%x = f32[64,32]{1,0} parameter(0)", `ROOT %y = f32[64,32]{1,0} custom-call(%x), custom_call_target="mine", metadata={op_name="f" source_file="a/b.go" source_line=7}`))
	require.Equal(t, []string{`custom-call "mine" a/b.go:7`}, c.Uncounted)
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

func TestCount_largest(t *testing.T) {
	c := counted(t, program("%x = f32[64,32]{1,0} parameter(0)", "%small = f32[32]{0} parameter(1)",
		`%a = f32[256,32]{1,0} broadcast(%small), dimensions={1}, metadata={op_name="wide" source_file="-" source_line=12}`,
		"%v = f32[32,256]{1,0} bitcast(%a)", // the same memory
		"%b = f32[64,64]{1,0} dot(%a, %a), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
		"%c = f32[512,512]{1,0:S(1)} broadcast(%small), dimensions={1}", // not device memory
		"ROOT %y = f32[64,32]{1,0} add(%x, %x)"))
	require.Equal(t, []Value{
		{Kind: kindTemporary, Name: "a", Operation: "wide", Shape: "f32[256,32]", Bytes: 32768, Where: "program:12", Line: 12},
		{Kind: kindTemporary, Name: "b", Shape: "f32[64,64]", Bytes: 16384},
		{Kind: kindArgument, Name: "x", Shape: "f32[64,32]", Bytes: 8192},
		{Kind: kindArgument, Name: "small", Argument: 1, Shape: "f32[32]", Bytes: 128},
	}, c.Largest)
	// An asynchronous operation shares its operand's memory, and has its result's memory once: here 1 KiB of 8.
	c = counted(t, program("%x = f32[64,32]{1,0} parameter(0)",
		"%s = ((f32[64,32]{1,0}), f32[8,32]{1,0}, s32[]{:S(2)}) slice-start(%x), slice={[0:8], [0:32]}", "ROOT %d = f32[8,32]{1,0} slice-done(%s)"))
	require.Equal(t, []Value{{Kind: kindArgument, Name: "x", Shape: "f32[64,32]", Bytes: 8192}, {Kind: kindOutput, Name: "s", Shape: "f32[8,32]", Bytes: 1024}}, c.Largest)
	require.Equal(t, 2*1024.0, c.Bytes)
	c = counted(t, program("%x = f32[64,32]{1,0} parameter(0)", "%s = (f32[64,32]{1,0:S(1)}, f32[64,32]{1,0}, u32[]{:S(2)}) copy-start(%x)",
		"%d = f32[64,32]{1,0:S(1)} copy-done(%s)", "ROOT %n = f32[64,32]{1,0} negate(%d)"))
	require.Equal(t, 2*8192.0, c.Bytes) // one read and one write
	// A tiled layout takes whole tiles.
	c = counted(t, program("ROOT %x = f32[9,10]{1,0:T(8,128)} parameter(0)"))
	require.EqualValues(t, 4*16*128, c.Largest[0].Bytes)
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
