package export

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/dtype"
	"github.com/lazo-ml/lazo/internal/vfs"
)

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

// Every dtype survives a round trip.
func TestRoundTrip_dtypes(t *testing.T) {
	for d := dtype.Bool; d < dtype.Count; d++ {
		t.Run(d.String(), func(t *testing.T) {
			s := shapes.Make(dtypes.DType(d), 3, 2)
			v := tensors.FromShape(s)
			require.NoError(t, v.MutableBytes(func(b []byte) {
				for i := range b {
					b[i] = byte(i) & 1
				}
			}))
			p := &Program{Text: "text", Inputs: []Value{{Name: "v", Role: State, Shape: s}}}
			if d.InFile() != "" {
				p.Weights = map[string]*tensors.Tensor{"v": v}
			}
			m := &vfs.Mem{}
			require.NoError(t, p.write(m, "model"))
			got, err := readBack(m)
			require.NoError(t, err)
			require.True(t, got.Inputs[0].Shape.Equal(s))
			if d.InFile() != "" {
				equal(t, p.Weights, got.Weights)
			}
		})
	}
}

// A write that fails at any call leaves no folder and no open file.
func TestWrite_failsAtEachCall(t *testing.T) {
	calls := 0
	for n := int64(1); ; n++ {
		m := &vfs.Mem{}
		counted := vfs.Count(vfs.Fail(m, vfs.Rule{N: n, Err: syscall.ENOSPC}))
		err := program().write(counted, "model")
		require.Zero(t, counted.Handles())
		if err == nil {
			_, err := readBack(m)
			require.NoError(t, err)
			break
		}
		calls++
		require.ErrorIs(t, err, syscall.ENOSPC)
		names, err := m.ReadDir(".")
		require.NoError(t, err)
		require.Empty(t, names, "call %d", n)
	}
	require.Greater(t, calls, 10)
	t.Logf("%d calls, each failed once: nothing left", calls)
}

// Whenever the power fails, a visible folder can be loaded, and a written folder is visible.
func TestWrite_lossOfPower(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	m, states, seen := &vfs.Mem{}, 0, 0
	check := func() {
		for _, chance := range []float64{0, 1, 0.5, 0.5, 0.5, 0.5} {
			after := m.Crash(chance, random)
			states++
			if _, err := after.Stat("model"); err != nil {
				continue
			}
			seen++
			_, err := readBack(after)
			require.NoError(t, err)
		}
	}
	require.NoError(t, program().write(vfs.Hook(m, func(c vfs.Call) error {
		if c.Op.Changes() {
			check()
		}
		return nil
	}), "model"))
	require.Positive(t, seen)
	seen = 0
	check()
	require.Equal(t, 6, seen, "once Write has returned it is there")
	t.Logf("%d states after a loss of power, none half written", states)
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
