package export

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/internal/vfs"
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

func TestSizes(t *testing.T) {
	m := &vfs.Mem{}
	require.NoError(t, doubles().write(m, "model"))
	p, err := readBack(m)
	require.NoError(t, err)
	require.Equal(t, doubles().Sizes, p.Sizes)
	model, err := p.Compile(plugintest.CPU(t))
	require.NoError(t, err)
	for _, x := range [][]float32{{1}, {1, 2}, {1, 2, 3}} {
		outputs, err := model.Run(map[string]*tensors.Tensor{"x": tensors.FromValue(x)})
		require.NoError(t, err)
		want := make([]float32, len(x))
		for i, v := range x {
			want[i] = 2 * v
		}
		require.Equal(t, want, outputs["y"].Value())
	}
	_, err = model.Run(map[string]*tensors.Tensor{"x": tensors.FromValue([]float32{1, 2, 3, 4})})
	require.EqualError(t, err, "export: run double: the batch has 4 examples, expected 1 to 3: it was exported for the sizes [2 3]")
	_, err = model.Run(nil)
	require.ErrorContains(t, err, "the batch has 0 examples")
	require.NoError(t, model.Close())

	// An earlier lazo, which knows no sizes, reports a newer format. The format of a program with one size is
	// unchanged.
	require.Equal(t, 2, p.manifestFormat(t))
	p.Sizes = nil
	require.Equal(t, 1, p.manifestFormat(t))

	for want, spoil := range map[string]func(*Program){
		`output "log", log: expected a model`: func(p *Program) {
			p.Outputs = append(p.Outputs, Value{Name: "log", Role: Log, Shape: shapes.Make(dtypes.Float32, 2), Fields: []string{"a", "b"}})
		},
		`and "y" is (Float32): expected a row for each example`:    func(p *Program) { p.Outputs[0].Shape = shapes.Make(dtypes.Float32) },
		`and "y" is (Float32)[3]: expected a row for each example`: func(p *Program) { p.Outputs[0].Shape = shapes.Make(dtypes.Float32, 3) },
		`batch size 2 has a program of`:                            func(p *Program) { p.Sizes[2] = doubling },
		`batch size 5 has a program of 0 bytes`:                    func(p *Program) { p.Sizes[5] = "" },
	} {
		p := doubles()
		spoil(p)
		require.ErrorContains(t, p.check(), want)
	}
	wrong := doubles()
	wrong.Sizes = map[int]string{4: doublingOf3}
	_, err = wrong.Compile(plugintest.CPU(t))
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "for a batch of 4: damaged: input 0 of the program is (Float32)[3]")
}

func (p *Program) manifestFormat(t *testing.T) int {
	m, err := newManifest(p, nil)
	require.NoError(t, err)
	return m.Format
}
