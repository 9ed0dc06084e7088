package flaxlike_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// rising is a set whose examples all differ, so that the loss of a model that does not learn says which were seen.
func rising(t testing.TB, n int) *data.Set {
	t.Helper()
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i)
	}
	return must.M1(data.New(data.X(x, n, 1), data.Y(make([]float32, n), n)))
}

// unlearning is a model that does not change.
func unlearning(t *testing.T) *flaxlike.Model {
	return newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer("sgd"), flaxlike.WithLearningRate(1e-30))
}

// A Fit that continues from checkpoints counts its epochs on, with other data, another batch size or other
// StepsPerEpoch. Each epoch has all the examples of the data of then, and what was killed once more ends the same.
func TestS06_epochsContinueWithOtherData(t *testing.T) {
	const before = 64 // 2 steps an epoch
	for _, row := range []struct {
		name                   string
		examples, batch, steps int
		batches, each          bool
		want                   []float64 // the steps at the end of each epoch
	}{
		{"the same", 64, 32, 0, false, false, []float64{2, 4, 6, 8, 10, 12}},
		{"more data", 112, 32, 0, false, false, []float64{2, 4, 6, 10, 14, 18}},
		{"more data, a row for each step", 112, 32, 0, false, true, []float64{2, 4, 6, 10, 14, 18}},
		{"less data", 32, 32, 0, false, false, []float64{2, 4, 6, 7, 8, 9}},
		{"a smaller batch", 64, 13, 0, false, false, []float64{2, 4, 6, 11, 16, 21}},
		{"steps of an epoch", 64, 32, 5, false, false, []float64{2, 4, 6, 11, 16, 21}},
		{"batches one by one", 64, 32, 4, true, false, []float64{2, 4, 6, 10, 14, 18}},
	} {
		t.Run(row.name, func(t *testing.T) {
			fit := func(folder *checkpoint.Folder, again bool, epochs int, more ...loop.Option) (*flaxlike.Model, *loop.History, []string, error) {
				examples, f := before, flaxlike.Fit{Epochs: epochs, BatchSize: 32, EachStep: row.each}
				var told []string
				if again {
					examples, f.BatchSize, f.StepsPerEpoch = row.examples, row.batch, row.steps
				}
				f.Callbacks = append(more, resume(folder, checkpoint.Every(loop.Steps(1)), checkpoint.Options{Changed: func(d checkpoint.Difference) error {
					told = append(told, d.What)
					return nil
				}}))
				m, set := unlearning(t), rising(t, examples)
				f.Validation = set
				if !row.batches {
					h, err := m.Fit(t.Context(), set, quiet(f))
					return m, h, told, err
				}
				if !again {
					f.StepsPerEpoch = 2
				}
				h, err := m.FitBatches(t.Context(), set.Batches(32, data.Shuffle(1)), quiet(f))
				return m, h, told, err
			}
			ends := func(h *loop.History) (steps []float64) {
				at, epochs, err := h.Series("epoch")
				require.NoError(t, err)
				require.Equal(t, []float64{1, 2, 3, 4, 5, 6}, epochs)
				for i := range at {
					steps = append(steps, float64(at[i].Steps))
					require.EqualValues(t, i+1, at[i].Epochs)
				}
				return steps
			}
			whole, broken := openFolder(t, t.TempDir(), checkpoint.Options{}), openFolder(t, t.TempDir(), checkpoint.Options{})
			for _, folder := range []*checkpoint.Folder{whole, broken} {
				_, _, _, err := fit(folder, false, 3)
				require.NoError(t, err)
			}
			m, h, told, err := fit(whole, true, 6)
			require.NoError(t, err)
			require.Equal(t, row.want, ends(h))
			require.IsIncreasing(t, series(t, h, "elapsed.steps"))
			if row.examples != before {
				require.Contains(t, told, "data")
			}
			if !row.batches && row.steps == 0 {
				for i, loss := range series(t, h, "val_loss") {
					examples := before
					if i >= 3 {
						examples = row.examples
					}
					of := must.M1(m.Evaluate(t.Context(), rising(t, examples)))["loss"]
					require.InEpsilon(t, of, loss, 1e-5)
					at := len(row.want) - 6 + i
					require.InEpsilon(t, of, lossAt(t, h, row.want[at]), 1e-4, "epoch %d has each example once", i+1)
				}
			}
			killed := errors.New("killed")
			kill := func(at float64) loop.Option {
				return loop.Watch(loop.At(loop.Steps(int64(at))), func(context.Context, loop.Report) error { return killed })
			}
			for _, at := range []float64{row.want[3] - 1, row.want[4] + 1} { // inside of an epoch, or the one before its end
				if at > 6 {
					_, _, _, err = fit(broken, true, 6, kill(at))
					require.ErrorIs(t, err, killed)
				}
			}
			_, got, _, err := fit(broken, true, 6)
			require.NoError(t, err)
			for _, name := range []string{"elapsed.steps", "elapsed.samples", "epoch", "loss", "val_loss"} {
				require.Equal(t, series(t, h, name), series(t, got, name), name)
			}
			again, got, _, err := fit(broken, true, 6)
			require.NoError(t, err, "it had ended")
			require.Equal(t, series(t, h, "epoch"), series(t, got, "epoch"))
			require.Equal(t, values(t, m), values(t, again))
		})
	}
}

// lossAt is the loss of the row of a step.
func lossAt(t *testing.T, h *loop.History, step float64) float64 {
	t.Helper()
	at, values, err := h.Series("loss")
	require.NoError(t, err)
	for i := range at {
		if float64(at[i].Steps) == step {
			return values[i]
		}
	}
	require.Fail(t, "no row", "of step %v", step)
	return 0
}

// Schedules in epochs, early stopping and the lines of output continue too.
func TestS06_schedulesOfEpochsContinue(t *testing.T) {
	folder := openFolder(t, t.TempDir(), checkpoint.Options{})
	var ended []int
	fit := func(examples, epochs int) string {
		var out bytes.Buffer
		_, err := unlearning(t).Fit(t.Context(), rising(t, examples), flaxlike.Fit{Epochs: epochs, BatchSize: 32, Lines: true, Output: &out,
			Validation: rising(t, 64), ValidationEvery: 2, Callbacks: []loop.Option{loop.Watch(loop.Every(loop.Epochs(1)), func(_ context.Context, r loop.Report) error {
				_, err := r.Logs.Float("val_loss")
				require.Equal(t, r.Elapsed.Epochs%2 == 0, err == nil)
				ended = append(ended, int(r.Elapsed.Epochs))
				return nil
			}), resume(folder), callbacks.StopEarly("val_loss", callbacks.Evaluations(4), callbacks.Monitor{MinDelta: 1})}})
		require.NoError(t, err)
		return out.String()
	}
	fit(64, 3)
	said := fit(112, 20)
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, ended)
	lines := strings.Split(strings.TrimSpace(said), "\n")
	for i, line := range lines[len(lines)-8 : len(lines)-1] {
		require.Contains(t, line, fmt.Sprintf("epoch %2d/20 - ", i+4))
	}
	require.Contains(t, lines[len(lines)-1], "stopped early at epoch 10: val_loss has not improved by more than 1 for 8 epochs; best ")
	require.Contains(t, lines[len(lines)-1], " at epoch 2")
}

// Batches that come an epoch at a time are asked for until they are enough, wherever their epochs end. A plain iterator
// is ranged over once.
func TestFitBatches_ofSources(t *testing.T) {
	set := rising(t, 96).Batches(32)
	var asked []int64
	parts := loop.From(func(position int64) iter.Seq2[data.Batch, error] {
		asked = append(asked, position)
		return data.Take(set.From(position), 3-position%3)
	})
	for _, f := range []flaxlike.Fit{{Epochs: 4}, {Until: loop.Steps(8)}, {Until: loop.Epochs(4)}} {
		f.StepsPerEpoch, asked = 2, nil
		h, err := unlearning(t).FitBatches(t.Context(), parts, quiet(f))
		require.NoError(t, err)
		require.Equal(t, []float64{1, 2, 3, 4}, series(t, h, "epoch"))
		require.Equal(t, []float64{2, 4, 6, 8}, series(t, h, "elapsed.steps"))
		require.Equal(t, []int64{0, 3, 6}, asked)
	}
	for _, until := range []loop.Period{nil, loop.Steps(4)} {
		ranges := 0
		plain := loop.Data[data.Batch](func(yield func(data.Batch, error) bool) {
			ranges++
			set.All()(yield)
		})
		f := flaxlike.Fit{StepsPerEpoch: 2, Until: until}
		if until == nil {
			f.Epochs = 2
		}
		h, err := unlearning(t).FitBatches(t.Context(), plain, quiet(f))
		require.ErrorIs(t, err, flaxlike.ErrDataEnded)
		require.Equal(t, []float64{1}, series(t, h, "epoch"))
		require.Equal(t, 1, ranges)
	}
	_, err := unlearning(t).FitBatches(t.Context(), loop.Data[data.Batch](nil), quiet(flaxlike.Fit{StepsPerEpoch: 2}))
	require.EqualError(t, err, "flaxlike: fit: the batches are nil")
}

// The means of a Fit do not have what was gathered before: by steps by hand, or by a Fit that ended inside of an epoch.
func TestFit_beginsWithEmptyMeans(t *testing.T) {
	set := rising(t, 64)
	fit := flaxlike.Fit{InOrder: true, BatchSize: 32}
	m := unlearning(t)
	fresh, err := m.Fit(t.Context(), set, quiet(fit))
	require.NoError(t, err)
	cut := fit
	cut.Until = loop.Steps(3)
	_, err = m.Fit(t.Context(), set, quiet(cut))
	require.NoError(t, err)
	again, err := m.Fit(t.Context(), set, quiet(fit))
	require.NoError(t, err)
	require.Equal(t, series(t, fresh, "loss"), series(t, again, "loss"))
	_, _, err = m.TrainStep(t.Context(), first(t, set, 32))
	require.NoError(t, err)
	again, err = m.Fit(t.Context(), set, quiet(fit))
	require.NoError(t, err)
	require.Equal(t, series(t, fresh, "loss"), series(t, again, "loss"))
}

// A validation begins with empty metrics, whatever test steps were made before, and the means of training do not change
// by it. So do several, and a sanity evaluation.
func TestS01_validationsBeginEmpty(t *testing.T) {
	set, other := rising(t, 64), rising(t, 96)
	fit := func(m *flaxlike.Model, f flaxlike.Fit) *loop.History {
		f.InOrder, f.BatchSize, f.Epochs = true, 32, 3
		h, err := m.Fit(t.Context(), set, quiet(f))
		require.NoError(t, err)
		return h
	}
	m := unlearning(t)
	alone := fit(m, flaxlike.Fit{})
	_, _, err := m.TestStep(t.Context(), first(t, other, 96))
	require.NoError(t, err)
	for _, f := range []flaxlike.Fit{{}, {SanityEvaluation: true}, {ValidationEvery: 1}, {ValidationAt: []int{1, 2, 3}}, {EachStep: true}} {
		f.Validation, f.Validations = set, map[string]*data.Set{"other": other}
		h := fit(m, f)
		want := series(t, alone, "loss")
		if f.EachStep {
			for i := range want {
				require.Equal(t, want[i], lossAt(t, h, float64(2*i+2)))
			}
		} else {
			require.Equal(t, want, series(t, h, "loss"))
		}
		for name, of := range map[string]*data.Set{"val_loss": set, "other_loss": other} {
			loss := must.M1(m.Evaluate(t.Context(), of))["loss"]
			require.InEpsilonSlice(t, []float64{loss, loss, loss}, series(t, h, name), 1e-6, name)
		}
	}
}
