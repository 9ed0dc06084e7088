package managed_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/export"
)

func tensorBytes(t *testing.T, v *tensors.Tensor) (all []byte) {
	t.Helper()
	require.NoError(t, v.ConstBytes(func(b []byte) { all = append(all, b...) }))
	return all
}

// The exported program is the one that the step runs, and read back it computes the same bits: logs, parameters,
// optimizer, random state.
func TestExport_sameBitsAsTheStep(t *testing.T) {
	r := plugintest.CPU(t)
	for _, row := range []struct {
		name  string
		build managed.Build
		steps int
	}{{"regression", regression, 3}, {"with dropout", noisy, 3}, {"convolution", convolving, 2}} {
		t.Run(row.name, func(t *testing.T) {
			state := newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())), managed.WithSeed(7))
			step := managed.TrainStep(row.build)
			t.Cleanup(func() { require.NoError(t, step.Close()) })
			batch := first(t, line(t, 64).Batches(16))
			dir := filepath.Join(t.TempDir(), "step")
			require.NoError(t, step.Export(dir, state, batch, managed.ExportOptions{})) // of a state that is new: export draws the initial values
			require.Empty(t, step.StableHLO(), "nothing was compiled for the step itself")

			p, err := export.Load(dir)
			require.NoError(t, err)
			m, err := p.Compile(r)
			require.NoError(t, err)
			defer func() { require.NoError(t, m.Close()) }()
			inputs := map[string]*tensors.Tensor{}
			for _, f := range batch.Fields {
				inputs[f.Name] = tensors.FromFlatDataAndDimensions(f.Array.Flat.([]float32), f.Array.Dims...)
			}
			for i := range row.steps {
				_, logs, err := step.Step(t.Context(), state, batch)
				require.NoError(t, err)
				outputs, err := m.Run(inputs)
				require.NoError(t, err)
				require.Len(t, outputs, 1)
				flat, err := tensors.CopyFlatData[float32](outputs["logs"])
				require.NoError(t, err)
				loss, err := logs.Float("loss")
				require.NoError(t, err)
				require.Equal(t, float32(loss), flat[0], "step %d", i)
			}
			require.Equal(t, step.StableHLO()[0], p.Text)
			got, err := m.State()
			require.NoError(t, err)
			compared := 0
			for name, v := range got {
				want, err := state.Value(name)
				require.NoError(t, err)
				require.Equal(t, tensorBytes(t, want), tensorBytes(t, v), name)
				compared += len(tensorBytes(t, v))
			}
			t.Logf("%d values of state, %d bytes, equal after %d steps", len(got), compared, row.steps)
		})
	}
}

func predictor(b *managed.Builder) map[string]*graph.Node {
	h := graph.Tanh(layers.Dense(b.Scope().In("hidden"), b.Field("x"), true, 4))
	return map[string]*graph.Node{"y": layers.Dense(b.Scope().In("out"), h, true, 1), "hidden": h}
}

func TestExportModel(t *testing.T) {
	state := newState(t, plugintest.CPU(t))
	batch := first(t, line(t, 64).Batches(16))
	batch.Fields = batch.Fields[:1]
	dir := filepath.Join(t.TempDir(), "a", "model")
	require.NoError(t, managed.ExportModel(dir, state, batch, predictor, managed.ExportOptions{Example: true}))
	p, err := export.Load(dir)
	require.NoError(t, err)
	require.Len(t, p.Inputs, 5)
	require.Len(t, p.Weights, 4)
	require.Equal(t, "hidden", p.Outputs[0].Name)
	require.Equal(t, []int{16, 1}, p.Outputs[1].Shape.Dimensions)
	m, err := p.Compile(state.Strategy().Runtime())
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	for range 2 {
		outputs, err := m.Run(p.Example.Inputs)
		require.NoError(t, err)
		for name, v := range p.Example.Outputs {
			require.Equal(t, tensorBytes(t, v), tensorBytes(t, outputs[name]), name)
		}
	}
}

// A prediction has no unused inputs, and an exported program is plain StableHLO, also with a GELU.
func TestR34_exportIsPlainAndNeedsNoLabels(t *testing.T) {
	state := newState(t, plugintest.CPU(t))
	batch := first(t, line(t, 64).Batches(16))
	batch.Fields[0], batch.Fields[1] = batch.Fields[1], batch.Fields[0] // what is left has another place
	model := func(b *managed.Builder) map[string]*graph.Node {
		b.Field("y")
		return map[string]*graph.Node{"gelu": activation.Gelu(layers.Dense(b.Scope().In("hidden"), b.Field("x"), true, 4))}
	}
	dir := filepath.Join(t.TempDir(), "model")
	require.NoError(t, managed.ExportModel(dir, state, batch, model, managed.ExportOptions{Example: true}))
	p, err := export.Load(dir)
	require.NoError(t, err)
	var names []string
	for _, v := range p.Inputs {
		names = append(names, v.Name)
	}
	require.Equal(t, []string{"x", "/hidden/dense/weights", "/hidden/dense/biases"}, names)
	require.NotContains(t, p.Text, "chlo.")
	m, err := p.Compile(state.Strategy().Runtime())
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	outputs, err := m.Run(p.Example.Inputs)
	require.NoError(t, err)
	require.Equal(t, tensorBytes(t, p.Example.Outputs["gelu"]), tensorBytes(t, outputs["gelu"]))
}

// An export changes neither the state's values nor its programs.
func TestExport_options(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	step := managed.TrainStep(regression)
	t.Cleanup(func() { require.NoError(t, step.Close()) })
	batch := first(t, line(t, 64).Batches(16))
	_, _, err := step.Step(t.Context(), state, batch)
	require.NoError(t, err)
	before, dir := bits(t, state), t.TempDir()
	require.NoError(t, step.Export(filepath.Join(dir, "bare"), state, batch, managed.ExportOptions{NoWeights: true}))
	require.NoError(t, step.Export(filepath.Join(dir, "full"), state, batch, managed.ExportOptions{Example: true}))
	require.Equal(t, before, bits(t, state))
	test := managed.TestStep(regression)
	t.Cleanup(func() { require.NoError(t, test.Close()) })
	_, _, err = test.Step(t.Context(), state, batch)
	require.NoError(t, err)
	dump := filepath.Join(dir, "dump")
	require.NoError(t, os.Mkdir(dump, 0o700))
	require.NoError(t, state.DumpXLA(dump))
	dumped, err := os.ReadDir(dump)
	require.NoError(t, err)
	require.Len(t, dumped, 2, "the exported programs are none of the state's")
	require.Equal(t, "01-test_step.mlir", dumped[1].Name())

	bare, err := export.Load(filepath.Join(dir, "bare"))
	require.NoError(t, err)
	require.Nil(t, bare.Weights)
	require.Nil(t, bare.Example)
	_, err = bare.Compile(state.Strategy().Runtime())
	require.ErrorContains(t, err, "no values for the state")
	full, err := export.Load(filepath.Join(dir, "full"))
	require.NoError(t, err)
	require.Equal(t, bare.Text, full.Text)
	logs := full.Outputs[len(full.Outputs)-1]
	require.Equal(t, export.Log, logs.Role)
	require.Equal(t, []string{"losses.loss", "metrics.largest"}, logs.Fields)
	_, _, err = step.Step(t.Context(), state, batch)
	require.NoError(t, err)
	want, err := state.Value("/dense/dense/weights")
	require.NoError(t, err)
	require.Equal(t, tensorBytes(t, want), tensorBytes(t, full.Example.Outputs["/dense/dense/weights"]), "the example is the step that follows")
}

func TestExport_mistakes(t *testing.T) {
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	closed := newState(t, state.Strategy().Runtime())
	require.NoError(t, closed.Close())
	step := managed.TrainStep(regression)
	batch := first(t, line(t, 64).Batches(16))
	taken := t.TempDir()
	for _, row := range []struct {
		name  string
		dir   string
		state *managed.State
		batch data.Batch
		want  string
	}{
		{"no state", "", nil, batch, "managed: export: the state is nil"},
		{"closed", "", closed, batch, "used after Close"},
		{"a field is missing", "", state, data.Batch{Fields: batch.Fields[:1]}, `the batch has no field "y"; it has: x`},
		{"the folder is there", taken, state, batch, "it already exists"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.dir == "" {
				row.dir = filepath.Join(t.TempDir(), "step")
			}
			err := step.Export(row.dir, row.state, row.batch, managed.ExportOptions{})
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, err, "managed: export: ")
			if row.dir != taken {
				_, err = os.Stat(row.dir)
				require.ErrorIs(t, err, fs.ErrNotExist)
			}
		})
	}
	require.ErrorIs(t, step.Export(taken, state, batch, managed.ExportOptions{}), fs.ErrExist)
	err := managed.ExportModel(filepath.Join(taken, "nil"), state, batch, func(*managed.Builder) map[string]*graph.Node {
		return map[string]*graph.Node{"y": nil}
	}, managed.ExportOptions{})
	require.ErrorContains(t, err, `managed: export model: `)
	require.ErrorContains(t, err, `output "y" is nil`)
	// After all this the state still trains.
	_, _, err = step.Step(t.Context(), state, batch)
	require.NoError(t, err)
	require.NoError(t, step.Close())
}

// On the plugin that compiles nothing a program can still be written, but not run for an example.
//
//lazo:race
func TestExport_plainGo(t *testing.T) {
	r := plugintest.Go(t)
	state := newState(t, r)
	batch := first(t, line(t, 64).Batches(16))
	dir := t.TempDir()
	require.NoError(t, managed.ExportModel(filepath.Join(dir, "model"), state, batch, predictor, managed.ExportOptions{}))
	p, err := export.Load(filepath.Join(dir, "model"))
	require.NoError(t, err)
	require.Empty(t, p.StableHLO)
	m, err := p.Compile(plugintest.CPU(t))
	require.NoError(t, err)
	require.NoError(t, m.Close())
	err = managed.ExportModel(filepath.Join(dir, "example"), state, batch, predictor, managed.ExportOptions{Example: true})
	require.ErrorIs(t, err, xla.ErrUnimplemented)
}
