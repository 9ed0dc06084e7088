package export

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

func TestModel(t *testing.T) {
	r := plugintest.CPU(t)
	p, err := readBack(written(t))
	require.NoError(t, err)
	m, err := p.Compile(r)
	require.NoError(t, err)
	for n := range 3 {
		outputs, err := m.Run(p.Example.Inputs)
		require.NoError(t, err)
		state, err := m.State()
		require.NoError(t, err)
		equal(t, map[string]*tensors.Tensor{"large": tensors.FromValue([]bool{n > 0, true})}, outputs)
		equal(t, map[string]*tensors.Tensor{
			"/sum": tensors.FromValue([]float32{1 + 5*float32(n+1), 2 + 9*float32(n+1)}), "/n": tensors.FromValue(int64(8 + n)),
		}, state)
		if n == 0 {
			state["large"] = outputs["large"]
			equal(t, p.Example.Outputs, state)
		}
	}
	for _, row := range []struct {
		name  string
		batch map[string]*tensors.Tensor
		want  string
	}{
		{"nothing", nil, `export: run counting: the batch: none named "x"; expected all of ["x"]`},
		{"another shape", map[string]*tensors.Tensor{"x": tensors.FromValue([]float32{1})}, `"x" has the shape (Float32)[1], expected (Float32)[2]`},
		{"a field too many", map[string]*tensors.Tensor{"x": p.Example.Inputs["x"], "y": p.Example.Inputs["x"]}, `"y" is not among ["x"]`},
	} {
		_, err := m.Run(row.batch)
		require.ErrorContains(t, err, row.want, row.name)
	}
	equal(t, program().Weights, p.Weights) // the runs overwrote a copy
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	_, err = m.Run(p.Example.Inputs)
	require.ErrorContains(t, err, "the model is closed")
	_, err = m.State()
	require.ErrorContains(t, err, "the model is closed")
}

// A run takes its batch from the host and reads the outputs there, without buffers.
func TestModel_runsWithoutBuffers(t *testing.T) {
	p, err := readBack(written(t))
	require.NoError(t, err)
	m, err := p.Compile(plugintest.CPU(t))
	require.NoError(t, err)
	before := pjrt.Live().Buffers
	made, err := m.runOn(m.compiled, p.Example.Inputs)
	require.NoError(t, err)
	require.Equal(t, before, pjrt.Live().Buffers)
	require.Len(t, made, 1)
	flat, ok := xla.OnHost(made[0])
	require.True(t, ok)
	require.Equal(t, []bool{false, true}, flat)
	require.NoError(t, m.Close())
}

// A manifest that does not match the program is found before any run, and nothing stays on the device.
func TestCompile_mistakes(t *testing.T) {
	r := plugintest.CPU(t)
	before := pjrt.Live()
	for _, row := range []struct {
		name  string
		spoil func(*Program)
		want  string
	}{
		{"no weights", func(p *Program) { p.Weights = nil }, "no values for the state: it has 2; set Weights"},
		{"no program", func(p *Program) { p.Text = "text" }, "compile counting"},
		{"an input less", func(p *Program) {
			p.Text = strings.Replace(p.Text, "(%x:", "(%y: tensor<f32>, %x:", 1)
		}, "writes output 0 over input 2"},
		{"another shape", func(p *Program) {
			p.Outputs[2].Shape = shapes.Make(dtypes.Bool, 3)
			p.Example = nil
		}, `damaged: output 2 of the program is (Bool)[2], in the manifest it is "large", (Bool)[3]`},
		{"inputs in another order", func(p *Program) { p.Inputs[0], p.Inputs[1] = p.Inputs[1], p.Inputs[0] }, "writes output 0 over input 1"},
		{"written over, but not replaced", func(p *Program) {
			p.Outputs[0].Role, p.Outputs[0].Replaces = Output, ""
		}, "writes output 0 over input 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := program()
			row.spoil(p)
			_, err := p.Compile(r)
			require.ErrorContains(t, err, row.want)
		})
	}
	after := pjrt.Live()
	after.Collected = before.Collected
	require.Equal(t, before, after)

	// State that the program replaces without overwriting is replaced too.
	p := program()
	p.Text = strings.ReplaceAll(strings.ReplaceAll(p.Text, " {tf.aliasing_output = 0 : i32}", ""), " {tf.aliasing_output = 1 : i32}", "")
	m, err := p.Compile(r)
	require.NoError(t, err)
	for range 2 {
		_, err = m.Run(p.Example.Inputs)
		require.NoError(t, err)
	}
	state, err := m.State()
	require.NoError(t, err)
	require.Equal(t, int64(9), state["/n"].Value())
	require.NoError(t, m.Close())

	plain := plugintest.Go(t)
	_, err = program().Compile(plain)
	require.ErrorIs(t, err, xla.ErrUnimplemented)
}
