package cost

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCount_wrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                          `line 1: it begins with ""`,
		"ELF":                       "expected HLO as XLA writes it",
		"HloModule m\n":             "no entry computation",
		"HloModule m\n\nnonsense\n": `line 3: "nonsense": expected the beginning of a computation`,
		program("ROOT %x = f32[2]{0} negate(%y)"):                                                               `its operand "y" is not an instruction`,
		program("ROOT %x = f32[2]{0} negate(%x)"):                                                               `comes before its operand "x"`,
		program("ROOT %x = g32[2]{0} parameter(0)"):                                                             "an unknown type of number",
		program("ROOT %x = f32[2]{1} parameter(0)"):                                                             "layout {1} of 1 axes",
		program("ROOT %x = f32[1000000000,1000000000]{1,0} parameter(0)"):                                       "more than 2^50 elements",
		program("ROOT %x = f32[2]{0} parameter(4)"):                                                             "expected each number below 1 once",
		program("%x = f32[2]{0} parameter(0)", "ROOT %y = f32[2]{0} fusion(%x), calls=%none"):                   "no such computation",
		program("%x = f32[2]{0} parameter(0)", "ROOT %y = f32[2]{0} all-reduce(%x), replica_groups=[3,4]<=[8]"): "3 groups of 4 of 8 devices",
		program("%x = f32[2]{0} parameter(0)", "ROOT %y = f32[2]{0} fusion(%x), calls=%main"):                   `computation "main" calls itself`,
		program("%x = f32[2]{0} parameter(0)", "ROOT %y = f32[2]{0} convolution(%x, %x), dim_labels=bf_io->bf"): "too few axes",
		program("%x = f32[2]{0} parameter(0)", "ROOT %y = f32[2]{0} dot(%x, %x), lhs_contracting_dims={3}"):     "axis 3 of f32[2]",
		program("%x = f32[2]{0} parameter(0)", "ROOT %y = f32[2]{0} dot(%x), lhs_contracting_dims={0}"):         "dot with 1 operands",
	} {
		_, err := Count(text, nil)
		require.ErrorContains(t, err, want, "%s", text)
	}
	_, err := Count("HloModule m\n\n\nnonsense", nil)
	require.ErrorContains(t, err, "line 4: ")
	_, err = Count(fixture(t, "tpu-loop.hlo"), []Axis{{"data", 0}})
	require.ErrorContains(t, err, `axis "data" of the mesh has 0 devices`)
}
