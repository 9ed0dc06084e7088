package export

import (
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/vfs"
)

// counting adds x to a sum, and returns the number of runs and whether the sum is large.
const counting = `module @counting {
  func.func public @main(%x: tensor<2xf32>, %sum: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %n: tensor<i64> {tf.aliasing_output = 1 : i32}) -> (tensor<2xf32>, tensor<i64>, tensor<2xi1>) {
    %new = stablehlo.add %sum, %x : tensor<2xf32>
    %one = stablehlo.constant dense<1> : tensor<i64>
    %count = stablehlo.add %n, %one : tensor<i64>
    %ten = stablehlo.constant dense<10.0> : tensor<2xf32>
    %large = stablehlo.compare GT, %new, %ten, FLOAT : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
    return %new, %count, %large : tensor<2xf32>, tensor<i64>, tensor<2xi1>
  }
}
`

func program() *Program {
	pair := shapes.Make(dtypes.Float32, 2)
	return &Program{
		Name: "counting", Text: counting, StableHLO: "1.13.3",
		Inputs: []Value{
			{Name: "x", Role: Batch, Shape: pair},
			{Name: "/sum", Role: State, Shape: pair},
			{Name: "/n", Role: State, Shape: shapes.Make(dtypes.Int64)},
		},
		Outputs: []Value{
			{Name: "/sum", Role: State, Shape: pair, Replaces: "/sum"},
			{Name: "/n", Role: State, Shape: shapes.Make(dtypes.Int64), Replaces: "/n"},
			{Name: "large", Role: Output, Shape: shapes.Make(dtypes.Bool, 2)},
		},
		Weights: map[string]*tensors.Tensor{"/sum": tensors.FromValue([]float32{1, 2}), "/n": tensors.FromValue(int64(7))},
		Example: &Example{
			Inputs: map[string]*tensors.Tensor{"x": tensors.FromValue([]float32{5, 9})},
			Outputs: map[string]*tensors.Tensor{
				"/sum": tensors.FromValue([]float32{6, 11}), "/n": tensors.FromValue(int64(8)), "large": tensors.FromValue([]bool{false, true}),
			},
		},
	}
}

// written returns a file system with the program in the folder "model".
func written(t *testing.T) *vfs.Mem {
	t.Helper()
	m := &vfs.Mem{}
	require.NoError(t, program().write(m, "model"))
	return m
}

// inFolder makes a folder of a file system its root.
type inFolder struct {
	vfs.FS
	dir string
}

func (f inFolder) Open(name string) (vfs.File, error)    { return f.FS.Open(f.dir + "/" + name) }
func (f inFolder) Stat(name string) (vfs.Info, error)    { return f.FS.Stat(f.dir + "/" + name) }
func (f inFolder) ReadDir(name string) ([]string, error) { return f.FS.ReadDir(f.dir) }

func readBack(m vfs.FS) (*Program, error) { return read(inFolder{m, "model"}) }

func equal(t *testing.T, want, got map[string]*tensors.Tensor) {
	t.Helper()
	require.Len(t, got, len(want))
	for name, v := range want {
		require.True(t, v.Equal(got[name]), "%s: %v, expected %v", name, got[name], v)
	}
}
