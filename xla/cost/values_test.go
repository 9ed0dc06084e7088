package cost

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
