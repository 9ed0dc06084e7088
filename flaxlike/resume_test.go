package flaxlike_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// A resumed Fit reports each setting that differs, of the data too.
func TestR13_fitTellsWhatChanged(t *testing.T) {
	folder := openFolder(t, t.TempDir(), checkpoint.Options{})
	fit := func(examples, batch, epochs int, o *optim.Optimizer, seed int64) (told []string, said string) {
		m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer(o), flaxlike.WithSeed(seed))
		var out bytes.Buffer
		_, err := m.Fit(t.Context(), line(t, examples), flaxlike.Fit{Epochs: epochs, BatchSize: batch, Lines: true, Output: &out, Callbacks: []loop.Option{
			resume(folder, checkpoint.Options{Changed: func(c checkpoint.Difference) error { told = append(told, c.String()); return nil }})}})
		require.NoError(t, err)
		return told, out.String()
	}
	content := func(n int) string { return first(t, line(t, n), 1).Deal.Content }
	told, _ := fit(64, 16, 1, optim.New(0.003), 1)
	require.Empty(t, told)
	told, said := fit(96, 32, 4, optim.New(0.1, optim.Clip{Value: 1}), 2)
	want := []string{"optimizer was gradient descent and is clip", "optimizer.rate was 0.003 and is 0.1; the saved value is used",
		"seed was 1 and is 2; the saved value is used", "batch was 16 and is 32",
		"data was 64 examples: x float32[1], y float32[1] and is 96 examples: x float32[1], y float32[1]",
		fmt.Sprintf("data.content was %s (checksum of a sample) and is %s (checksum of a sample)", content(64), content(96)),
		"order was shuffled, seed 1 and is shuffled, seed 2"}
	require.Equal(t, want, told)
	for _, line := range want {
		require.Contains(t, said, "fit: the run is resumed: "+line+"\n")
	}
	refused := errors.New("no")
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	_, err := m.Fit(t.Context(), line(t, 64), quiet(flaxlike.Fit{Epochs: 9, Callbacks: []loop.Option{
		resume(folder, checkpoint.Options{Changed: func(checkpoint.Difference) error { return refused }})}}))
	require.ErrorIs(t, err, refused)
	t.Logf("R13: %d changes of a Fit that goes on: each heard by Changed, and a line of Output", len(told))
}

// A resumed Fit reports changed losses, weights and layers, also those of a Functional.
func TestFit_reportsWhatChangedInTheModel(t *testing.T) {
	coded := func(rate float64) nn.Layer {
		return flaxlike.Functional(func(scope *model.Scope, input func(string) *graph.Node) map[string]*graph.Node {
			h := nn.Dropout{Rate: rate}.Apply(scope.In("drop"), input("x"))
			return map[string]*graph.Node{"preds": nn.Dense{Units: 3}.Apply(scope.In("out"), h)}
		})
	}
	listed := func(rate, penalty float64) nn.Layer {
		return nn.Sequential{nn.Dropout{Rate: rate}, nn.L2{Rate: penalty, Layers: []nn.Layer{nn.Dense{Units: 3}}}}
	}
	var folder *checkpoint.Folder
	for i, row := range []struct {
		network nn.Layer
		loss    flaxlike.Loss
		classes map[int]float64
		weights string
		want    []string
	}{
		{coded(0.1), flaxlike.Loss{Name: sparse}, map[int]float64{1: 1}, "", nil},
		{coded(0.1), flaxlike.Loss{Name: sparse, Weight: 1}, map[int]float64{2: 1}, "", nil},
		{coded(0.2), flaxlike.Loss{Name: sparse}, map[int]float64{1: 2}, "w", []string{"weights of classes was none and is 1: 2",
			`weights of examples was none and is field "w"`, "layer drop was Dropout Rate=0.1 and is Dropout Rate=0.2"}},
		{listed(0.1, 0.1), flaxlike.Loss{Name: sparse, Smoothing: 0.1}, map[int]float64{1: 1}, "", nil},
		{listed(0.2, 0.3), flaxlike.Loss{Name: sparse, Weight: 2}, map[int]float64{1: 1}, "", []string{"layer 0 was Dropout Rate=0.1 and is Dropout Rate=0.2",
			"layer 1 was L2 Rate=0.1 and is L2 Rate=0.3", "loss was sparse_categorical_crossentropy, smoothing 0.1 and is sparse_categorical_crossentropy, weight 2"}},
	} {
		if i == 0 || i == 3 {
			folder = openFolder(t, t.TempDir(), checkpoint.Options{})
		}
		var told []string
		options := []flaxlike.Option{flaxlike.WithLoss(row.loss), flaxlike.WithClassWeights(row.classes)}
		if row.weights != "" {
			options = append(options, flaxlike.WithSampleWeights(row.weights))
		}
		set := sorted(t, 64, data.Named("w", slices.Repeat([]float32{1}, 64), 64))
		m := newModel(t, row.network, options...)
		_, err := m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: i + 1, Callbacks: []loop.Option{
			resume(folder, checkpoint.Options{Changed: func(c checkpoint.Difference) error { told = append(told, c.String()); return nil }})}}))
		require.NoError(t, err)
		require.Equal(t, row.want, told, "%d", i)
	}
}

// Other data of the same size is reported, and the same data is not, in any order.
func TestFit_tellsOtherDataOfTheSameSize(t *testing.T) {
	folder, all := openFolder(t, t.TempDir(), checkpoint.Options{}), sorted(t, 160)
	for i, row := range []struct {
		from, to int
		inOrder  bool
		want     []string
	}{{0, 64, false, nil}, {0, 64, false, nil}, {0, 64, true, []string{"order"}}, {3, 67, true, []string{"data.content"}}} {
		var told []string
		m := newModel(t, nn.Dense{Units: 3}, flaxlike.WithLoss(sparse))
		_, err := m.Fit(t.Context(), must.M1(all.Slice(row.from, row.to)), quiet(flaxlike.Fit{Epochs: i + 1, BatchSize: 16, InOrder: row.inOrder, Callbacks: []loop.Option{
			resume(folder, checkpoint.Options{Changed: func(c checkpoint.Difference) error { told = append(told, c.What); return nil }})}}))
		require.NoError(t, err)
		require.Equal(t, row.want, told, "%d", i)
	}
}

// A run whose loss is no number to its end says so and since when.
func TestFit_saysThatTheLossIsNaN(t *testing.T) {
	fit := func(rate float64) string {
		m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer("sgd"), flaxlike.WithLearningRate(rate))
		var out bytes.Buffer
		_, err := m.Fit(t.Context(), line(t, 64), flaxlike.Fit{Epochs: 4, Lines: true, Output: &out})
		require.NoError(t, err)
		return out.String()
	}
	require.Regexp(t, `fit: the loss is (NaN|\+Inf), and was not finite in any row since that at epoch [12]: `, fit(1e30))
	require.NotContains(t, fit(1e-3), "fit: ")
}

// The error of an invalid file name has the name that was given.
func TestSave_whereItCannot(t *testing.T) {
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"))
	require.NoError(t, m.Init(t.Context(), first(t, line(t, 4), 4)))
	require.EqualError(t, m.Save(""), "flaxlike: save : the name of the file is empty")
	path := filepath.Join(t.TempDir(), "missing", "m.safetensors")
	err := m.Save(path)
	require.EqualError(t, err, "flaxlike: save "+path+": a file in the folder "+filepath.Dir(path)+": no such file or directory")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A Fit that had stopped early and is started again makes no step and says why; with more patience it continues.
func TestR18_anEarlyStoppedFitStaysEnded(t *testing.T) {
	folder, set := openFolder(t, t.TempDir(), checkpoint.Options{}), line(t, 64)
	fit := func(patience callbacks.Evaluations) (epochs int, said string) {
		m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer("sgd"), flaxlike.WithLearningRate(1e-30))
		var out bytes.Buffer
		h, err := m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 50, Validation: set, Lines: true, Output: &out,
			Callbacks: []loop.Option{callbacks.StopEarly("val_loss", patience), resume(folder)}})
		require.NoError(t, err)
		return h.Len(), out.String()
	}
	epochs, _ := fit(3)
	require.Equal(t, 4, epochs)
	for range 2 {
		epochs, said := fit(3)
		require.Equal(t, 4, epochs, "no further one")
		require.Equal(t, 1, strings.Count(said, "\n"), said)
		require.Regexp(t, `^fit: the run had ended: loop: step 8: on each val_loss: stop early: no value of val_loss below \S+ \(of step 2\) for 3 evaluations: stop\n$`, said)
	}
	epochs, _ = fit(5)
	require.Equal(t, 6, epochs, "with more patience")
}

// A Fit that is started again after its end leaves a model as the training did: with its variables, to be counted,
// saved and read.
func TestKerasFit_anEndedRunLeavesTheModel(t *testing.T) {
	folder, set, path := openFolder(t, t.TempDir(), checkpoint.Options{}), line(t, 64), filepath.Join(t.TempDir(), "weights")
	var saved [][]byte
	for _, again := range []string{"trained", "by Fit", "by FitBatches", "by batches that end", "initialised"} {
		m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithLearningRate(0.125))
		fit := quiet(flaxlike.Fit{Epochs: 2, Callbacks: []loop.Option{resume(folder)}, StepsPerEpoch: 2})
		if again == "initialised" {
			require.NoError(t, m.Init(t.Context(), first(t, set, 32)))
		}
		var h *loop.History
		var err error
		switch again {
		case "by FitBatches":
			h, err = m.FitBatches(t.Context(), set.Batches(32), fit)
		case "by batches that end":
			h, err = m.FitBatches(t.Context(), loop.Data[data.Batch](set.Batches(32).All()), fit)
		default:
			h, err = m.Fit(t.Context(), set, fit)
		}
		require.NoError(t, err)
		require.Equal(t, 2, h.Len())
		require.EqualValues(t, 2, m.Summary().Total(managed.Parameter).Size, again)
		require.NoError(t, m.Save(path), again)
		_, weights, _, err := safetensors.ReadFile(path, safetensors.Limits{})
		require.NoError(t, err)
		if saved == nil {
			saved = weights
		}
		require.Equal(t, saved, weights, again)
		require.Equal(t, int64(2), m.Summary().Layers[0].Size, again)
		rate, err := m.LearningRate()
		require.NoError(t, err)
		require.Equal(t, 0.125, rate)
	}
	other := newModel(t, nn.Dense{Units: 2}, flaxlike.WithLoss("mse"))
	_, err := other.FitBatches(t.Context(), must.M1(data.New(data.X(make([]float32, 64), 32, 2), data.Y(make([]float32, 64), 32, 2))).Batches(32),
		quiet(flaxlike.Fit{Epochs: 2, Callbacks: []loop.Option{resume(folder)}, StepsPerEpoch: 2}))
	var unlike *managed.MismatchError
	require.ErrorAs(t, err, &unlike, "the run of another model had ended")
}
