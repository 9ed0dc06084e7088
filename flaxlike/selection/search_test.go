package selection_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/selection"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// rates is a search for the learning rate of a line, of which 0.1 is the best of the grid by far.
func rates(t testing.TB, dir string) selection.Search {
	set := line(t, 64)
	return selection.Search{
		Space: []selection.Parameter{{Name: "rate", Low: 1e-5, High: 10, Log: true}, {Name: "optimizer", Values: []any{"sgd", "momentum"}}},
		Grid:  4, Entry: "val_loss", Training: set, Dir: dir,
		Make: func(ctx context.Context, p *selection.Parameters) (*flaxlike.Model, flaxlike.Fit, error) {
			m, err := flaxlike.New(ctx, nn.Sequential{nn.Dense{Units: 1}}, flaxlike.WithLoss("mse"), flaxlike.WithOptimizer(p.Text("optimizer")),
				flaxlike.WithLearningRate(p.Float("rate")), flaxlike.WithStrategy(jit(t)), flaxlike.WithSeed(int64(p.Number)), flaxlike.WithBatchSize(8))
			return m, flaxlike.Fit{Epochs: 8, Validation: set, Output: io.Discard}, err
		},
	}
}

func table(t testing.TB, s *selection.Result) string {
	var text bytes.Buffer
	require.NoError(t, s.WriteCSV(&text))
	return text.String()
}

// A search finds the learning rate that is known to be the best; its model is what was trained; and a second run of it
// makes nothing and has the same table.
func TestSearch_findsTheBest(t *testing.T) {
	dir := t.TempDir()
	s := rates(t, dir)
	made := 0
	inner := s.Make
	s.Make = func(ctx context.Context, p *selection.Parameters) (*flaxlike.Model, flaxlike.Fit, error) {
		made++
		return inner(ctx, p)
	}
	var seen []int
	s.OnTrial = func(trial selection.Trial) { seen = append(seen, trial.Number) }
	found, err := s.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 8, made)
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, seen)
	require.Equal(t, loop.Lowest, found.Direction)
	require.Len(t, found.Trials, 8)
	best, ok := found.Best()
	require.True(t, ok)
	require.InEpsilon(t, 0.1, best.Parameters["rate"], 1e-9)
	require.Less(t, best.Value, 1e-2)
	require.Equal(t, best.Value, best.Figures["val_loss"])
	for i, trial := range found.Trials[1:] {
		if trial.Err == nil {
			require.GreaterOrEqual(t, trial.Value, found.Trials[i].Value, "in order")
		}
	}
	last := found.Trials[7]
	require.Equal(t, 10.0, last.Parameters["rate"])
	require.ErrorContains(t, last.Err, "in epoch ")
	require.ErrorContains(t, last.Err, "loss is ")
	require.ErrorIs(t, last.Err, loop.ErrNonFinite)

	m, err := found.Open(t.Context(), flaxlike.WithStrategy(jit(t)))
	require.NoError(t, err)
	defer m.Close()
	figures, err := m.Evaluate(t.Context(), s.Training)
	require.NoError(t, err)
	require.InDelta(t, best.Value, figures["loss"], 1e-9)
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, files, 8+1+1+1, "a record each, the search's, the lock, and one model: %q", files)

	rows, err := csv.NewReader(strings.NewReader(table(t, found))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"trial", "val_loss", "epoch", "epochs", "rate", "optimizer", "failed"}, rows[0])
	require.Len(t, rows, 9)
	require.Len(t, strings.Split(found.String(), "\n"), 9)

	again, err := s.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 8, made)
	require.Equal(t, table(t, found), table(t, again))
	require.EqualError(t, again.Trials[7].Err, last.Err.Error(), "a read trial has the text")
}

// With halving the trials that go on are as if they had never stopped, and those trained are the best before.
func TestSearch_halving(t *testing.T) {
	s := rates(t, t.TempDir())
	s.Space = []selection.Parameter{{Name: "rate", Low: 1e-4, High: 1, Log: true}, {Name: "units", Low: 1, High: 3, Integer: true}, {Name: "unused", Low: 0, High: 1}}
	s.Grid, s.Trials, s.FirstEpochs, s.Factor, s.Seed = 0, 9, 2, 3, 3
	epochs := 0
	s.Make = func(ctx context.Context, p *selection.Parameters) (*flaxlike.Model, flaxlike.Fit, error) {
		p.Float("unused")
		m, err := flaxlike.New(ctx, nn.Sequential{nn.Dense{Units: p.Int("units")}, nn.Dense{Units: 1}}, flaxlike.WithLoss("mse"),
			flaxlike.WithLearningRate(p.Float("rate")), flaxlike.WithStrategy(jit(t)))
		return m, flaxlike.Fit{Validation: s.Training, Output: io.Discard, Callbacks: []loop.Option{
			loop.Watch(loop.Every(loop.Epochs(1)), func(context.Context, loop.Report) error { epochs++; return nil })}}, err
	}
	var rungs []int
	s.OnTrial = func(trial selection.Trial) { rungs = append(rungs, trial.Epochs) }
	found, err := s.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 9*2+3*(6-2)+1*(18-6), epochs, "what was trained is not trained again")
	require.Equal(t, []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 6, 6, 6, 18}, rungs)
	best, _ := found.Best()
	require.Equal(t, 18, best.Epochs)

	// The best one, trained in one go.
	m := newModel(t, nn.Sequential{nn.Dense{Units: best.Parameters["units"].(int)}, nn.Dense{Units: 1}}, flaxlike.WithLoss("mse"),
		flaxlike.WithLearningRate(best.Parameters["rate"].(float64)))
	history, err := m.Fit(t.Context(), s.Training, flaxlike.Fit{Epochs: 18, Validation: s.Training, Output: io.Discard})
	require.NoError(t, err)
	whole, _, err := history.Best("val_loss", loop.Lowest)
	require.NoError(t, err)
	require.Equal(t, whole, best.Value)
	opened, err := found.Open(t.Context(), flaxlike.WithStrategy(jit(t)))
	require.NoError(t, err)
	defer opened.Close()
	figures, err := opened.Evaluate(t.Context(), s.Training)
	require.NoError(t, err)
	require.InDelta(t, best.Value, figures["loss"], 1e-9)
}

// A search that was cancelled in the middle of a trial continues there, and has the same table.
func TestSearch_cancelled(t *testing.T) {
	whole := rates(t, t.TempDir())
	whole.Grid, whole.Trials, whole.Space[0] = 0, 3, selection.Parameter{Name: "rate", Low: 1e-4, High: 0.1, Log: true}
	want, err := whole.Run(t.Context())
	require.NoError(t, err)
	s := rates(t, t.TempDir())
	s.Grid, s.Trials, s.Space = 0, whole.Trials, whole.Space
	why := errors.New("enough")
	stops, inner := 0, s.Make
	ctx, cancel := context.WithCancelCause(t.Context())
	s.Make = func(of context.Context, p *selection.Parameters) (*flaxlike.Model, flaxlike.Fit, error) {
		m, f, err := inner(of, p)
		f.Callbacks = []loop.Option{loop.Watch(loop.Every(loop.Epochs(1)), func(_ context.Context, r loop.Report) error {
			if r.Elapsed.Epochs == 3 && stops < p.Number+1 {
				stops++
				cancel(why)
			}
			return nil
		})}
		return m, f, err
	}
	for i := range 3 {
		found, err := s.Run(ctx)
		require.ErrorIs(t, err, why)
		require.Len(t, found.Trials, i)
		ctx, cancel = context.WithCancelCause(t.Context())
	}
	found, err := s.Run(ctx)
	cancel(nil)
	require.NoError(t, err)
	require.Equal(t, table(t, want), table(t, found))
}

func TestSearch_refuses(t *testing.T) {
	dir := t.TempDir()
	s := rates(t, dir)
	s.Grid, s.Trials, s.Space[0] = 0, 1, selection.Parameter{Name: "rate", Low: 1e-4, High: 1e-2, Log: true}
	_, err := s.Run(t.Context())
	require.NoError(t, err)
	for want, change := range map[string]func(*selection.Search){
		"selection: search: Method is RandomSearch(2), and that of the folder's search RandomSearch(1)": func(s *selection.Search) { s.Trials = 2 },
		"Seed is 7, and that of the folder's search 0":                                                  func(s *selection.Search) { s.Seed = 7 },
		"Entry is loss, and that of the folder's search val_loss":                                       func(s *selection.Search) { s.Entry = "loss" },
		`Space, "rate" is LogRange("rate", 1e-05, 1), and that of the folder's search LogRange("rate", 0.0001, 0.01)`: func(s *selection.Search) {
			s.Space = []selection.Parameter{{Name: "rate", Low: 1e-5, High: 1, Log: true}, s.Space[1]}
		},
		`Space, "optimizer" is nothing, and that of the folder's search Choice("optimizer", "sgd", "momentum")`: func(s *selection.Search) { s.Space = s.Space[:1] },
		"are in another order":               func(s *selection.Search) { s.Space = []selection.Parameter{s.Space[1], s.Space[0]} },
		"Training is 32 examples:":           func(s *selection.Search) { s.Training = line(t, 32) },
		"Entry is empty":                     func(s *selection.Search) { s.Entry = "" },
		`is better: set Direction`:           func(s *selection.Search) { s.Entry = "val_size" },
		"the Space has no parameters":        func(s *selection.Search) { s.Space = nil },
		`the parameter "rate" appears twice`: func(s *selection.Search) { s.Space = append(s.Space[:2:2], s.Space[0]) },
		`the parameter "a": Low is 0 and High is 1: expected ends above 0`: func(s *selection.Search) { s.Space = []selection.Parameter{{Name: "a", Low: 0, High: 1, Log: true}} },
		`the parameter "a": Low is 2 and High is 1: expected finite ends`:  func(s *selection.Search) { s.Space = []selection.Parameter{{Name: "a", Low: 2, High: 1}} },
		`the parameter "a": the value 1 appears twice`:                     func(s *selection.Search) { s.Space = []selection.Parameter{{Name: "a", Values: []any{1, 1}}} },
		"got Grid 1: expected at least two points":                         func(s *selection.Search) { s.Trials, s.Grid = 0, 1 },
		"both Trials and Grid are 0":                                       func(s *selection.Search) { s.Trials = 0 },
		"got Grid with Trials":                                             func(s *selection.Search) { s.Grid = 3 },
		`the parameter "a": it has no Values, and Low and High are 0`:      func(s *selection.Search) { s.Space = []selection.Parameter{{Name: "a"}} },
		`the values 1 and "x" are of two types`:                            func(s *selection.Search) { s.Space = []selection.Parameter{{Name: "a", Values: []any{1, "x"}}} },
		"it has Values and a range":                                        func(s *selection.Search) { s.Space = []selection.Parameter{{Name: "a", Values: []any{1}, High: 2}} },
		"expected integers":                                                func(s *selection.Search) { s.Space = []selection.Parameter{{Name: "a", High: 2.5, Integer: true}} },
		"and a factor of at least 2":                                       func(s *selection.Search) { s.Trials, s.FirstEpochs, s.Factor = 9, 1, 1 },
		"got Trials 7: the space has only 6 different trials": func(s *selection.Search) {
			s.Space, s.Trials = []selection.Parameter{{Name: "a", Low: 1, High: 3, Integer: true}, {Name: "b", Values: []any{true, false}}}, 7
		},
		"the function Make is nil": func(s *selection.Search) { s.Make = nil },
		"the folder has no name":   func(s *selection.Search) { s.Dir = "" },
	} {
		other := s
		change(&other)
		_, err := other.Run(t.Context())
		require.ErrorContains(t, err, want)
	}
	record := filepath.Join(dir, "trial-0000-0.json")
	text, err := os.ReadFile(record)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(record, bytes.Replace(text, []byte(`"epochs":8`), []byte(`"epochs":9`), 1), 0o600))
	_, err = s.Run(t.Context())
	require.ErrorContains(t, err, "the record trial-0000-0.json: ")
	require.ErrorContains(t, err, "checksum")

	for want, change := range map[string]func(p *selection.Parameters, f *flaxlike.Fit) error{
		`trial 0: parameter "rat": unknown name; did you mean "rate"?`:  func(p *selection.Parameters, _ *flaxlike.Fit) error { p.Float("rat"); return nil },
		`the parameter "rate" is a float64, but Make reads it as a int`: func(p *selection.Parameters, _ *flaxlike.Fit) error { p.Int("rate"); return errors.New("no") },
		"the Fit has checkpoint.Resume, an InitialEpoch":                func(_ *selection.Parameters, f *flaxlike.Fit) error { f.EachStep = true; return nil },
		"all 1 trials failed; trial 0: broken":                          func(*selection.Parameters, *flaxlike.Fit) error { return errors.New("broken") },
		"all 1 trials failed; trial 0: panic: at the disco":             func(*selection.Parameters, *flaxlike.Fit) error { panic("at the disco") },
		`a callback waits for "val_loss": no such entry`:                func(_ *selection.Parameters, f *flaxlike.Fit) error { f.Validation = nil; return nil },
	} {
		other, inner := s, s.Make
		other.Dir = t.TempDir()
		other.Make = func(ctx context.Context, p *selection.Parameters) (*flaxlike.Model, flaxlike.Fit, error) {
			m, f, err := inner(ctx, p)
			if err == nil {
				if err = change(p, &f); err != nil {
					return nil, f, errors.Join(err, m.Close())
				}
			}
			return m, f, err
		}
		_, err := other.Run(t.Context())
		require.ErrorContains(t, err, want)
	}
	other := s
	other.Dir, other.Space = t.TempDir(), append(s.Space[:2:2], selection.Parameter{Name: "more", Values: []any{true}})
	_, err = other.Run(t.Context())
	require.ErrorContains(t, err, `no trial has read the parameter "more"`)
	other.Dir, other.Space, other.Grid, other.Trials, other.FirstEpochs, other.Factor = t.TempDir(), s.Space, 0, 2, 1, 2
	_, err = other.Run(t.Context())
	require.ErrorContains(t, err, "the Fit has Epochs or Until, but FirstEpochs and Factor set the number of epochs")
}

// Known names have their direction; others are to be told.
func TestSearch_direction(t *testing.T) {
	for entry, want := range map[string]string{"val_loss": "lowest", "loss": "lowest", "val_accuracy": "highest", "val_f1": "highest", "out_loss": "lowest",
		"val_mse": "lowest", "r2": "highest", "val_top_5_accuracy": "highest", "val_mean_iou": "highest", "val_kl_divergence": "lowest", "val_rmse": "lowest"} {
		got, err := selection.DirectionOf(entry, 0)
		require.NoError(t, err)
		require.Equal(t, want, got.String(), entry)
	}
	_, err := selection.DirectionOf("val_size", 0)
	require.Error(t, err)
	got, err := selection.DirectionOf("val_size", loop.Highest)
	require.NoError(t, err)
	require.Equal(t, loop.Highest, got)
}

// A callback that stops early or keeps the best works, also when a trial continues.
func TestSearch_withCallbacks(t *testing.T) {
	s := rates(t, t.TempDir())
	s.Grid, s.Trials, s.FirstEpochs, s.Factor = 0, 4, 2, 2
	inner := s.Make
	s.Make = func(ctx context.Context, p *selection.Parameters) (*flaxlike.Model, flaxlike.Fit, error) {
		m, f, err := inner(ctx, p)
		f.Epochs, f.Callbacks = 0, []loop.Option{callbacks.StopEarly("val_loss", callbacks.Evaluations(1), callbacks.Monitor{MinDelta: 1e9})}
		return m, f, err
	}
	found, err := s.Run(t.Context())
	require.NoError(t, err)
	best, _ := found.Best()
	require.Less(t, best.Epochs, 4)
	require.False(t, math.IsNaN(best.Value))
}
