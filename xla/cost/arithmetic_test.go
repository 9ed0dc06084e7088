package cost

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
