//lazo:norace
package selection_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/selection"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// small is a search of two trials, whose Make other goes over.
func small(t testing.TB, dir string, other func(p *selection.Parameters, f *flaxlike.Fit) error) selection.Search {
	s := rates(t, dir)
	s.Space, s.Grid = []selection.Parameter{{Name: "rate", Values: []any{0.01, 0.1}}}, 2
	s.Make = func(ctx context.Context, p *selection.Parameters) (*flaxlike.Model, flaxlike.Fit, error) {
		f := flaxlike.Fit{Epochs: 2, Validation: s.Training, Output: io.Discard}
		if err := other(p, &f); err != nil {
			return nil, f, err
		}
		m, err := flaxlike.New(ctx, nn.Sequential{nn.Dense{Units: 1}}, flaxlike.WithLoss("mse"), flaxlike.WithMetrics("mae"),
			flaxlike.WithLearningRate(p.Float("rate")), flaxlike.WithStrategy(jit(t)), flaxlike.WithBatchSize(8))
		return m, f, err
	}
	return s
}

func unchanged(*selection.Parameters, *flaxlike.Fit) error { return nil }

// changed is a set of the same shape with other numbers.
func changed(t testing.TB, set *data.Set) *data.Set {
	x, y := set.Fields()[0].Array, set.Fields()[1].Array
	flat := append([]float32(nil), x.Flat.([]float32)...)
	flat[0]++
	return must.M1(data.New(data.Field{Name: set.Fields()[0].Name, Array: data.Array{Flat: flat, Dims: x.Dims}}, data.Field{Name: set.Fields()[1].Name, Array: y}))
}

// Other examples of the same shape are another search. A folder of an older version, without their checksum, is
// accepted.
func TestSearch_ofOtherExamples(t *testing.T) {
	s := small(t, t.TempDir(), unchanged)
	found, err := s.Run(t.Context())
	require.NoError(t, err)
	best, _ := found.Best()
	require.Contains(t, best.Figures, "val_mae", "metrics are among the figures: %v", best.Figures)
	require.Contains(t, best.Figures, "mae")
	require.NotContains(t, best.Figures, "epoch")

	other := s
	other.Training = changed(t, s.Training)
	_, err = other.Run(t.Context())
	require.ErrorContains(t, err, "The checksum of examples of Training is ")
	require.ErrorContains(t, err, "use another folder for another search")

	path := filepath.Join(s.Dir, "search.json")
	var sealed struct {
		CRC32C string          `json:"crc32c"`
		Record json.RawMessage `json:"record"`
	}
	require.NoError(t, json.Unmarshal(must.M1(os.ReadFile(path)), &sealed))
	var plan struct {
		Version  int
		Settings []struct{ Name, Value string }
	}
	require.NoError(t, json.Unmarshal(sealed.Record, &plan))
	kept := plan.Settings[:0]
	for _, setting := range plan.Settings {
		if setting.Name != "The checksum of examples of Training" {
			kept = append(kept, setting)
		}
	}
	require.Len(t, kept, len(plan.Settings)-1)
	plan.Settings = kept
	sealed.Record = must.M1(json.Marshal(plan))
	sealed.CRC32C = safetensors.Checksum(0).Update(sealed.Record).String()
	require.NoError(t, os.WriteFile(path, must.M1(json.Marshal(sealed)), 0o600))
	again, err := s.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, found, again)
}

// After Make is fixed, trials that failed before an epoch are made; the files of those that failed later are named.
func TestSearch_mended(t *testing.T) {
	dir := t.TempDir()
	_, err := small(t, dir, func(*selection.Parameters, *flaxlike.Fit) error { return errors.New("broken") }).Run(t.Context())
	require.ErrorContains(t, err, "all 2 trials failed; trial 0: broken")
	require.NotContains(t, err.Error(), "records of the folder")
	found, err := small(t, dir, unchanged).Run(t.Context())
	require.NoError(t, err)
	require.NoError(t, found.Trials[1].Err)

	dir = t.TempDir()
	late := func(_ *selection.Parameters, f *flaxlike.Fit) error {
		f.Callbacks = []loop.Option{loop.Watch(loop.Every(loop.Epochs(1)), func(context.Context, loop.Report) error { return errors.New("late") })}
		return nil
	}
	_, err = small(t, dir, late).Run(t.Context())
	require.ErrorContains(t, err, "late")
	require.NotContains(t, err.Error(), "records of the folder")
	_, err = small(t, dir, unchanged).Run(t.Context())
	require.ErrorContains(t, err, "2 of them were not run now, but are records of the folder: remove these files to run the trials again: trial-0000-0.json, trial-0001-0.json")
	for _, name := range []string{"trial-0000-0.json", "trial-0001-0.json"} {
		require.NoError(t, os.Remove(filepath.Join(dir, name)))
	}
	_, err = small(t, dir, unchanged).Run(t.Context())
	require.NoError(t, err)
}

// An entry that no trial would log ends the search at once and leaves a folder that takes the right one.
func TestSearch_entryThatIsNotLogged(t *testing.T) {
	s := small(t, t.TempDir(), unchanged)
	s.Entry, s.Direction = "val_acc", loop.Highest
	found, err := s.Run(t.Context())
	require.ErrorIs(t, err, loop.ErrNoEntry)
	require.ErrorContains(t, err, `a callback waits for "val_acc": no such entry`)
	require.NotContains(t, err.Error(), "trials failed")
	require.Empty(t, found.Trials)
	s.Entry, s.Direction = "val_mae", 0
	_, err = s.Run(t.Context())
	require.NoError(t, err)
}

// As many thresholds as there are no classes are refused where they are set.
func TestSetThresholds_number(t *testing.T) {
	set := must.M1(data.New(data.X([]float32{0, 1}, 2, 1), data.Y([]float32{0, 1}, 2, 1)))
	m := newModel(t, nn.Sequential{nn.Dense{Units: 1}}, flaxlike.WithLoss("binary_crossentropy"))
	must.M1(m.Predict(t.Context(), set))
	require.ErrorContains(t, m.SetThresholds("preds", 0.2, 0.3), `output "preds": there are 2 thresholds for 1 classes: expected one, or one for each`)
	require.Empty(t, m.Describe().Thresholds)
	require.NoError(t, m.SetThresholds("preds", 0.2))
}

// A lowest rate above the model's is an error, also where the optimizer has its rate from the first step on.
func TestFit_minRateAboveTheRate(t *testing.T) {
	set := line(t, 16)
	m := newModel(t, nn.Sequential{nn.Dense{Units: 1}}, flaxlike.WithLoss("mse"), flaxlike.WithLearningRate(0.001))
	_, err := m.Fit(t.Context(), set, flaxlike.Fit{Epochs: 3, Output: io.Discard,
		Callbacks: []loop.Option{callbacks.ReduceOnPlateau("loss", 0.5, callbacks.Evaluations(1), callbacks.Monitor{MinRate: 1})}})
	require.ErrorContains(t, err, "the learning rate is 0.001, below MinRate, 1")
}
