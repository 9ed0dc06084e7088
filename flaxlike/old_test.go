package flaxlike_test

import (
	"os"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/golden"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// A run that was saved when flaxlike's layers were GoMLX's, with other names of variables, continues: the model
// predicts the same, and further epochs have the same losses.
func TestFit_goesOnFromLayersOfGoMLX(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/layers-of-gomlx")))
	folder := must.M1(checkpoint.Open(dir, checkpoint.Options{}))
	defer func() { require.NoError(t, folder.Close()) }()
	m := newModel(t, nn.Sequential{nn.Embedding{Vocabulary: 7, Width: 4}, nn.Positions{Length: 5}, nn.Residual{nn.Attention{Heads: 2, Width: 2, Causal: true}},
		nn.LayerNorm{}, nn.Conv{Channels: 4, Window: []int{3}}, nn.RMSNorm{}, nn.GRU{Units: 3, Last: true}, nn.Dense{Units: 2}},
		flaxlike.WithLoss(sparse), flaxlike.WithLearningRate(0.01), flaxlike.WithBatchSize(4))
	var x, y []int32
	for i := range int32(8 * 5) {
		x = append(x, (i*5+i/4)%7)
	}
	for i := range int32(8) {
		y = append(y, i%2)
	}
	set := must.M1(data.New(data.X(x, 8, 5), data.Y(y, 8)))
	_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 2, Callbacks: []loop.Option{resume(folder)}})) // brings it in
	require.NoError(t, err)
	out, err := m.Predict(t.Context(), set)
	require.NoError(t, err)
	there := []float32{0.7697378, -0.5133961, 0.0042480594, 0.113120705, 0.2233955, 0.12931496, -0.4611763, 0.86583334,
		0.7697378, -0.5133961, 0.0042480594, 0.113120705, 0.2233955, 0.12931496, -0.4611763, 0.86583334}
	require.InDeltaSlice(t, there, output(t, out).Flat, 1e-5)
	h, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 5, Callbacks: []loop.Option{resume(folder)}}))
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2, 3, 4, 5}, series(t, h, "epoch"), "what was saved before Fit had Keras's names has them now")
	_, err = h.Last("avg_loss")
	require.ErrorIs(t, err, loop.ErrNoEntry)
	require.InDeltaSlice(t, []float64{0.4239363968372345, 0.36867189407348633, 0.306173175573349}, series(t, h, "loss")[2:], 1e-4)
}

// A file of the first lazo whose files are complete opens, and the model predicts the same. Files of later versions are
// next to it, and none is removed.
func TestOpen_savedBefore(t *testing.T) {
	const path = "testdata/saved-1.safetensors"
	_, err := opened(t, path)
	require.EqualError(t, err, "flaxlike: open testdata/saved-1.safetensors: the file's preparation: read JSON: version 0, expected 1: another version of lazo wrote it, or another program\n"+
		"  give Open WithPreparation with one that makes the same fields")
	m, err := opened(t, path, flaxlike.WithPreparation(numbered(t, "")))
	require.NoError(t, err)
	some, err := tabled(t, 64, "ant", "bee", "cat").Slice(0, 3)
	require.NoError(t, err)
	out, err := m.Predict(t.Context(), some)
	require.NoError(t, err)
	there := []float32{0.31553638, 0.38008082, -0.24460846, 0.58018, 0.6422984, -0.57578635, -1.3051912, -0.47787255, 1.528239}
	require.InDeltaSlice(t, there, output(t, out).Flat, 1e-5)
	require.Equal(t, []flaxlike.Input{{Name: "x", Type: "float32", Dims: []int{3}}}, m.Describe().Inputs)
	d, err := flaxlike.Describe(path)
	require.NoError(t, err)
	golden.Equal(t, "testdata/saved-1.golden", d.String()+"\n")
}
