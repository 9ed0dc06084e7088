package export

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/xla"
)

// After its runtime's Close a model reports that in one line.
func TestF41_theRuntimeIsClosedFirst(t *testing.T) {
	r := plugintest.CPU(t)
	m, err := program().Compile(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, stateErr := m.State()
	for _, err := range []error{stateErr, m.Close()} {
		require.ErrorIs(t, err, xla.ErrClosed)
		require.ErrorContains(t, err, "the runtime was closed before it: close states and models first")
		require.NotContains(t, err.Error(), "\n")
	}
	require.NoError(t, m.Close())
}

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

func TestRoundTrip(t *testing.T) {
	want := program()
	dir := filepath.Join(t.TempDir(), "new", "model")
	require.NoError(t, want.Write(dir))
	got, err := Load(dir)
	require.NoError(t, err)
	require.Equal(t, lazoVersion(), got.Lazo)
	require.Equal(t, []string{want.Name, want.Text, want.StableHLO}, []string{got.Name, got.Text, got.StableHLO})
	require.Equal(t, want.Outputs[0], got.Outputs[0])
	require.Equal(t, "/n", got.Inputs[2].Name)
	require.True(t, got.Inputs[2].Shape.IsScalar())
	equal(t, want.Weights, got.Weights)
	equal(t, want.Example.Inputs, got.Example.Inputs)
	equal(t, want.Example.Outputs, got.Example.Outputs)
	entries, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing else is left")
	require.ErrorIs(t, want.Write(dir), fs.ErrExist)
	require.ErrorIs(t, want.Write("/"), fs.ErrExist)

	want.Weights, want.Example = nil, nil
	require.NoError(t, want.Write(dir+"2"))
	got, err = Load(dir + "2")
	require.NoError(t, err)
	require.Nil(t, got.Weights)
	require.Nil(t, got.Example)
}

func TestWrite_mistakes(t *testing.T) {
	huge := shapes.Shape{DType: dtypes.Float32, Dimensions: []int{1 << 40, 1 << 40}}
	for _, row := range []struct {
		name  string
		spoil func(*Program)
		want  string
	}{
		{"no program", func(p *Program) { p.Text = " " }, "the program is empty"},
		{"two of a name", func(p *Program) { p.Inputs[1].Name = "x" }, `input 1: a second one named "x"`},
		{"no name", func(p *Program) { p.Outputs[2].Name = "" }, "output 2: the name"},
		{"role of an input", func(p *Program) { p.Inputs[0].Role = Output }, `input "x": role "output", expected one of ["state" "batch"]`},
		{"replaces nothing", func(p *Program) { p.Outputs[0].Replaces = "" }, "expected a replacement for each output of the role state"},
		{"replaces a batch", func(p *Program) { p.Outputs[0].Replaces = "x" }, "expected a state of that shape"},
		{"replaces another shape", func(p *Program) { p.Outputs[0].Replaces = "/n" }, "expected a state of that shape"},
		{"fields of no log", func(p *Program) { p.Outputs[2].Fields = []string{"a", "b"} }, "2 fields, expected one for each number of a log"},
		{"a shape that cannot be", func(p *Program) { p.Inputs[0].Shape = huge }, "overflows an integer"},
		{"a dtype that is not there", func(p *Program) { p.Inputs[0].Shape = shapes.Make(dtypes.S4, 2) }, "cannot be exported"},
		{"a weight is missing", func(p *Program) { delete(p.Weights, "/n") }, `weights: none named "/n"; expected all of ["/n" "/sum"]`},
		{"a weight too many", func(p *Program) { p.Weights["/m"] = tensors.FromValue(int64(7)) }, `weights: "/m" is not among`},
		{"a weight of another shape", func(p *Program) { p.Weights["/n"] = tensors.FromValue(float32(7)) }, `weights: "/n" has the shape (Float32), expected (Int64)`},
		{"half an example", func(p *Program) { p.Example.Inputs = nil }, `example: inputs: none named "x"`},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := program()
			row.spoil(p)
			dir := filepath.Join(t.TempDir(), "model")
			require.ErrorContains(t, p.Write(dir), row.want)
			_, err := os.Stat(dir)
			require.ErrorIs(t, err, fs.ErrNotExist)
			_, err = p.Compile(nil)
			require.ErrorContains(t, err, row.want)
		})
	}
	p := program()
	p.Inputs[0].Shape.DType, p.Outputs[2].Shape.DType = dtypes.Complex128, dtypes.Complex128
	p.Example.Inputs["x"], p.Example.Outputs["large"] = tensors.FromValue([]complex128{1, 2}), tensors.FromValue([]complex128{1, 2})
	require.ErrorContains(t, p.Write(filepath.Join(t.TempDir(), "model")), "cannot be kept in a safetensors file")
}
