package managed_test

import (
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/xla/export"
)

// A model that was exported for several sizes takes any number of examples up to the largest, each with its own row.
func TestExportModel_sizes(t *testing.T) {
	r := plugintest.CPU(t)
	state := newState(t, r, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	batch := first(t, line(t, 64).Batches(4))
	dir := filepath.Join(t.TempDir(), "model")
	require.NoError(t, managed.ExportModel(dir, state, batch, predictor, managed.ExportOptions{Sizes: []int{1, 4, 2, 1}, Example: true}))
	p, err := export.Load(dir)
	require.NoError(t, err)
	require.Len(t, p.Sizes, 2)
	loaded, err := p.Compile(r)
	require.NoError(t, err)
	m := managed.Exported{Model: loaded}
	x := batch.Fields[0].Array
	whole, err := m.Answer(t.Context(), data.Batch{Fields: []data.Field{{Name: "x", Array: x}}})
	require.NoError(t, err)
	for rows := 1; rows <= 4; rows++ {
		some, err := m.Answer(t.Context(), data.Batch{Fields: []data.Field{{Name: "x", Array: x.Slice(0, rows)}}})
		require.NoError(t, err)
		for name, a := range whole {
			require.Equal(t, a.Slice(0, rows).Dims, some[name].Dims)
			require.InDeltaSlice(t, a.Slice(0, rows).Flat, some[name].Flat, 1e-6, "%s of %d", name, rows)
		}
	}
	for rows, want := range map[int]string{
		5: "managed: predict: run model: the batch has 5 examples, expected 1 to 4: it was exported for the sizes [1 2 4]",
		0: "managed: predict: run model: the batch has 0 examples, expected 1 to 4",
	} {
		_, err = m.Answer(t.Context(), data.Batch{Fields: []data.Field{data.X(make([]float32, rows), rows, 1)}})
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, loaded.Close())

	mean := func(b *managed.Builder) map[string]*graph.Node {
		return map[string]*graph.Node{"mean": graph.ReduceAllMean(b.Field("x"))}
	}
	err = managed.ExportModel(filepath.Join(t.TempDir(), "mean"), state, batch, mean, managed.ExportOptions{Sizes: []int{2}})
	require.EqualError(t, err, `managed: export model: for a batch of 2: output "mean" is (Float32), and for 4 examples (Float32): expected a row for each example`)
	err = managed.ExportModel(filepath.Join(t.TempDir(), "none"), state, batch, predictor, managed.ExportOptions{Sizes: []int{0}})
	require.ErrorContains(t, err, "for a batch of 0: expected sizes of 1 and up")
	step := managed.TrainStep(regression)
	err = step.Export(filepath.Join(t.TempDir(), "step"), state, batch, managed.ExportOptions{Sizes: []int{2}})
	require.ErrorContains(t, err, "Sizes is only for ExportModel")
	require.NoError(t, step.Close())
}
