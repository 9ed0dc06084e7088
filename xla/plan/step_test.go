package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/golden"
	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/cost"
)

func TestStep_divided(t *testing.T) {
	s := Step{Name: "step", Text: stablehlo, Batch: []int{0}}
	text, mesh, batch, division, err := s.divided(4)
	require.NoError(t, err)
	require.Equal(t, []cost.Axis{{Name: "data", Size: 4}}, mesh)
	require.Equal(t, 32, batch)
	require.Equal(t, "data parallel: 8 examples on each of 4 devices, all of the state on each", division)
	golden.Equal(t, "testdata/divided.mlir", text)
	require.Equal(t, strings.Count(stablehlo, "\n"), strings.Count(text, "\n")) // line numbers stay valid

	// One device changes nothing, nor is a sharded program changed.
	same, _, _, division, err := s.divided(1)
	require.NoError(t, err)
	require.Equal(t, stablehlo, same)
	require.Equal(t, "one device", division)
	again, mesh, _, division, err := Step{Text: text, Batch: []int{0}}.divided(4)
	require.NoError(t, err)
	require.Equal(t, text, again)
	require.Equal(t, []cost.Axis{{Name: "data", Size: 4}}, mesh)
	require.Equal(t, `as the program says: "data"=4`, division)

	_, _, _, _, err = s.divided(5)
	require.ErrorIs(t, err, xla.ErrUneven)
	_, _, _, _, err = Step{Text: text}.divided(8)
	require.ErrorContains(t, err, "divided over 4 devices")
	_, _, _, _, err = Step{Text: stablehlo}.divided(2)
	require.ErrorContains(t, err, "it is not known which inputs are the batch")
	_, _, _, _, err = Step{Text: stablehlo, Batch: []int{7}}.divided(2)
	require.ErrorContains(t, err, "input 7 is the batch's: the program has 3")
	_, _, _, _, err = Step{Text: stablehlo, Batch: []int{2}}.divided(2)
	require.ErrorContains(t, err, "no axis of examples")
	_, _, _, _, err = Step{Text: "nothing"}.divided(1)
	require.ErrorContains(t, err, "no function @main")
}
