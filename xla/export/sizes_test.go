package export

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"
)

const doubling = `module {
  func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
    %y = stablehlo.add %x, %x : tensor<2xf32>
    return %y : tensor<2xf32>
  }
}`

// doubles is a program for batches of 2 and 3.
func doubles() *Program {
	return &Program{Name: "double", Text: doubling, Sizes: map[int]string{3: doublingOf3},
		Inputs:  []Value{{Name: "x", Role: Batch, Shape: shapes.Make(dtypes.Float32, 2)}},
		Outputs: []Value{{Name: "y", Role: Output, Shape: shapes.Make(dtypes.Float32, 2)}}}
}

const doublingOf3 = `module {
  func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {
    %y = stablehlo.add %x, %x : tensor<3xf32>
    return %y : tensor<3xf32>
  }
}`

func (p *Program) manifestFormat(t *testing.T) int {
	m, err := newManifest(p, nil)
	require.NoError(t, err)
	return m.Format
}
