package flaxlike_test

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
)

// changesOfWeights are the ways to change a model's weights.
func changesOfWeights(t *testing.T, set *data.Set) map[string]func(context.Context, *flaxlike.Model) error {
	saved := func(m *flaxlike.Model) string {
		path := filepath.Join(t.TempDir(), "m.safetensors")
		must.M(m.Save(path))
		return path
	}
	return map[string]func(context.Context, *flaxlike.Model) error{
		"SetValue": func(_ context.Context, m *flaxlike.Model) error {
			return m.SetValue("/model/0/bias", tensors.FromValue([]float32{1, 2, 3}))
		},
		"Restore": func(ctx context.Context, m *flaxlike.Model) error {
			folder := must.M1(checkpoint.Open(t.TempDir(), checkpoint.Options{}))
			if err := folder.Save(ctx, 1, must.M1(m.State().(checkpoint.State).Content(ctx))); err != nil {
				return err
			}
			return m.State().(checkpoint.State).Restore(ctx, must.M1(folder.Load(ctx, 1)))
		},
		"Snapshot.Restore": func(ctx context.Context, m *flaxlike.Model) error {
			copied := must.M1(snapshotOf(m)(ctx))
			defer copied.Close()
			return copied.Restore(ctx)
		},
		"SetOptimizer": func(ctx context.Context, m *flaxlike.Model) error {
			return m.SetOptimizer(ctx, optim.New(0.1, optim.Adam{}))
		},
		"Load": func(ctx context.Context, m *flaxlike.Model) error { return m.Load(ctx, saved(m)) },
		"LoadSome": func(ctx context.Context, m *flaxlike.Model) error {
			_, err := m.LoadSome(ctx, saved(m), optim.Under("/model/0"))
			return err
		},
		"CopyFrom": func(ctx context.Context, m *flaxlike.Model) error {
			from := newModel(t, nn.Sequential{nn.Dense{Units: 3}})
			must.M(from.Init(ctx, first(t, set, 32)))
			_, err := m.CopyFrom(ctx, from, nil)
			return err
		},
		"TrainStep": func(ctx context.Context, m *flaxlike.Model) error {
			_, _, err := m.TrainStep(ctx, first(t, set, 32))
			return err
		},
		"Fit that stops inside of its first epoch": func(ctx context.Context, m *flaxlike.Model) error {
			_, err := m.Fit(ctx, set, quiet(flaxlike.Fit{Callbacks: []loop.Option{
				loop.Watch(loop.At(loop.Steps(1)), func(context.Context, loop.Report) error { return loop.ErrStop })}}))
			return err
		},
	}
}

// TestS19_changesOutdateWhatWasFound: each way to change a model's weights outdates its calibration.
func TestS19_changesOutdateWhatWasFound(t *testing.T) {
	set := tooSure(t, 120)
	for name, change := range changesOfWeights(t, set) {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, nn.Sequential{nn.Dense{Units: 3}}, flaxlike.WithLoss(sparse), flaxlike.WithLearningRate(0.05))
			_, err := m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 3, Output: io.Discard})
			require.NoError(t, err)
			_, err = m.Calibrate(t.Context(), set)
			require.NoError(t, err)
			require.NoError(t, m.SetLearningRate(0.5), "which changes no weight")
			_, err = must.M1(m.Predict(t.Context(), set)).Probabilities()
			require.NoError(t, err)
			require.NoError(t, change(t.Context(), m))
			_, err = must.M1(m.Predict(t.Context(), set)).Probabilities()
			require.ErrorIs(t, err, flaxlike.ErrOutdated)
		})
	}
}

// A card has figures of the weights that the model has, and of no others: also in a file, and in a model of it.
func TestCard_figuresOfTheseWeights(t *testing.T) {
	set := tooSure(t, 120)
	for name, change := range changesOfWeights(t, set) {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, nn.Sequential{nn.Dense{Units: 3}}, flaxlike.WithLoss(sparse), flaxlike.WithLearningRate(0.05))
			card := func(m *flaxlike.Model) (fit, evaluated map[string]float64) {
				path := filepath.Join(t.TempDir(), "m.safetensors")
				require.NoError(t, m.Save(path))
				said, own := must.M1(flaxlike.Describe(path)).Card, m.Describe().Card
				require.Equal(t, own.Fit, said.Fit)
				require.Equal(t, own.Evaluated, said.Evaluated)
				return said.Fit, said.Evaluated
			}
			h := must.M1(m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 2})))
			found := must.M1(m.Evaluate(t.Context(), set))
			require.NoError(t, m.SetLearningRate(0.5), "which changes no weight")
			fit, evaluated := card(m)
			require.Equal(t, must.M1(h.Last("loss")), fit["loss"])
			require.Equal(t, found, evaluated)
			path := filepath.Join(t.TempDir(), "m.safetensors")
			require.NoError(t, m.Save(path))

			again, err := opened(t, path)
			require.NoError(t, err)
			for _, m := range []*flaxlike.Model{m, again} {
				require.NoError(t, change(t.Context(), m))
				fit, evaluated = card(m)
				require.Empty(t, fit)
				require.Empty(t, evaluated)
				found = must.M1(m.Evaluate(t.Context(), set))
				_, evaluated = card(m)
				require.Equal(t, found, evaluated)
				h = must.M1(m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 1})))
				fit, evaluated = card(m)
				require.Equal(t, must.M1(h.Last("loss")), fit["loss"])
				require.Empty(t, evaluated)
			}
		})
	}
}

// The figures of a Fit are of an epoch: a run that ends after it has none, nor one whose weights a callback changed
// last. After a copy was restored and trained further they are those of the last epoch.
func TestCard_figuresOfTheEpochThatTheWeightsAreOf(t *testing.T) {
	set := tooSure(t, 96) // 3 batches
	at := func(step int64, f func(m *flaxlike.Model) error, m *flaxlike.Model) loop.Option {
		return loop.Watch(loop.At(loop.Steps(step)), func(context.Context, loop.Report) error { return f(m) })
	}
	alter := func(m *flaxlike.Model) error {
		return m.SetValue("/model/0/bias", tensors.FromValue([]float32{1, 2, 3}))
	}
	var copied loop.Snapshot
	take := func(m *flaxlike.Model) (err error) { copied, err = snapshotOf(m)(t.Context()); return err }
	back := func(m *flaxlike.Model) error { return copied.Restore(t.Context()) }
	for name, c := range map[string]struct {
		steps int64
		make  func(m *flaxlike.Model) []loop.Option
		row   int // of the history, from 1 on
	}{
		"ends inside of an epoch":   {steps: 7},
		"altered in the last epoch": {steps: 6, row: 2, make: func(m *flaxlike.Model) []loop.Option { return []loop.Option{at(5, alter, m)} }},
		"altered at the end":        {steps: 6, make: func(m *flaxlike.Model) []loop.Option { return []loop.Option{at(6, alter, m)} }},
		"an earlier epoch restored at the end": {steps: 9, row: 1, make: func(m *flaxlike.Model) []loop.Option {
			return []loop.Option{at(3, take, m), at(9, back, m)}
		}},
		"an earlier epoch restored and trained further": {steps: 9, row: 3, make: func(m *flaxlike.Model) []loop.Option {
			return []loop.Option{at(3, take, m), at(6, back, m)}
		}},
		"inside of an epoch restored at the end": {steps: 9, make: func(m *flaxlike.Model) []loop.Option {
			return []loop.Option{at(4, take, m), at(9, back, m)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, nn.Sequential{nn.Dense{Units: 3}}, flaxlike.WithLoss(sparse), flaxlike.WithLearningRate(0.05))
			must.M1(m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 1}))) // an earlier run is no part of it
			f := quiet(flaxlike.Fit{Until: loop.Steps(c.steps)})
			if c.make != nil {
				f.Callbacks = c.make(m)
			}
			h := must.M1(m.Fit(t.Context(), set, f))
			fit := m.Describe().Card.Fit
			if c.row == 0 {
				require.Empty(t, fit)
				return
			}
			require.Equal(t, series(t, h, "loss")[c.row-1], fit["loss"])
		})
	}
}

// A file that a callback saves has the card of its epoch.
func TestCard_savedByACallback(t *testing.T) {
	set, path := tooSure(t, 96), filepath.Join(t.TempDir(), "best.safetensors")
	m := newModel(t, nn.Sequential{nn.Dense{Units: 3}}, flaxlike.WithLoss(sparse), flaxlike.WithLearningRate(0.05))
	var cards []flaxlike.Card
	h := must.M1(m.Fit(t.Context(), set, quiet(flaxlike.Fit{Epochs: 2, Validation: set, Callbacks: []loop.Option{
		callbacks.OnBest("val_loss", func(context.Context, loop.Report) error {
			err := m.Save(path)
			if err == nil {
				cards = append(cards, must.M1(flaxlike.Describe(path)).Card)
			}
			return err
		})}})))
	require.Len(t, cards, 2)
	for i, c := range cards {
		require.Equal(t, series(t, h, "val_loss")[i], c.Fit["val_loss"])
		require.Equal(t, []int{i + 1, 96, 2}, []int{c.Epochs, c.Examples, len(c.Fields)})
	}
}

// snapshotOf is the method Snapshot of the model's state.
func snapshotOf(m *flaxlike.Model) func(context.Context) (loop.Snapshot, error) {
	return m.State().(interface {
		Snapshot(context.Context) (loop.Snapshot, error)
	}).Snapshot
}
