package selection_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/selection"
	"github.com/lazo-ml/lazo/loop"
)

// several draws n trials of rates, calls each after each epoch, and leaves the epochs to the search with halving.
func several(t testing.TB, dir string, n int, each func(p *selection.Parameters, epoch int64)) selection.Search {
	s := rates(t, dir)
	s.Space = []selection.Parameter{{Name: "rate", Low: 1e-4, High: 0.1, Log: true}, s.Space[1]}
	s.Grid, s.Trials, s.Seed = 0, n, 5
	inner := s.Make
	s.Make = func(ctx context.Context, p *selection.Parameters) (*flaxlike.Model, flaxlike.Fit, error) {
		m, f, err := inner(ctx, p)
		f.Callbacks = []loop.Option{loop.Watch(loop.Every(loop.Epochs(1)), func(_ context.Context, r loop.Report) error { each(p, r.Elapsed.Epochs); return nil })}
		if f.Epochs = 4; s.FirstEpochs > 0 {
			f.Epochs = 0
		}
		return m, f, err
	}
	return s
}

// halved trains with rungs of 1, 2 and 4 epochs.
func halved(s *selection.Search) {
	inner := s.Make
	s.FirstEpochs, s.Factor = 1, 2
	s.Make = func(ctx context.Context, p *selection.Parameters) (*flaxlike.Model, flaxlike.Fit, error) {
		m, f, err := inner(ctx, p)
		f.Epochs = 0
		return m, f, err
	}
}

// together runs a search several times at once.
func together(t testing.TB, s selection.Search, n int) (tables []string) {
	t.Helper()
	var all sync.WaitGroup
	var errs [8]error
	tables = make([]string, n)
	for i := range n {
		all.Go(func() {
			found, err := s.Run(t.Context())
			if errs[i] = err; err == nil {
				tables[i] = table(t, found)
			}
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs[:]...))
	return tables
}

// Parallel Runs train each trial once, and have the table of one Run, also with rungs.
func TestSearch_parallel(t *testing.T) {
	for name, with := range map[string]func(*selection.Search){"random": func(*selection.Search) {}, "halving": halved} {
		var epochs atomic.Int64
		count := func(*selection.Parameters, int64) { epochs.Add(1) }
		whole := several(t, t.TempDir(), 7, count)
		with(&whole)
		want, err := whole.Run(t.Context())
		require.NoError(t, err)
		once := epochs.Swap(0)
		s := several(t, t.TempDir(), 7, count)
		with(&s)
		for _, got := range together(t, s, 3) {
			require.Equal(t, table(t, want), got, name)
		}
		require.Equal(t, once, epochs.Load(), name)
	}
}

// A Run continues the trial of one that ended.
func TestSearch_parallelAfterAnEnd(t *testing.T) {
	want, err := several(t, t.TempDir(), 4, func(*selection.Parameters, int64) {}).Run(t.Context())
	require.NoError(t, err)
	why, ended := errors.New("enough"), atomic.Bool{}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var epochs atomic.Int64
	s := several(t, t.TempDir(), 4, func(_ *selection.Parameters, epoch int64) {
		if epochs.Add(1); epoch == 2 && !ended.Swap(true) {
			cancel(why)
		}
	})
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { _, _ = s.Run(ctx) })
	}
	found, err := s.Run(t.Context())
	all.Wait()
	require.NoError(t, err)
	require.Equal(t, table(t, want), table(t, found))
	require.LessOrEqual(t, epochs.Load(), int64(4*4), "no epoch is trained twice")
}

// Without waiting for a rung, trials continue that are among the best of those that ended it by then.
func TestSearch_asynchronous(t *testing.T) {
	s := several(t, t.TempDir(), 9, func(*selection.Parameters, int64) {})
	halved(&s)
	s.Asynchronous = true
	known := map[int]map[int]float64{} // by epochs and number
	continued := 0
	s.OnTrial = func(trial selection.Trial) {
		require.NoError(t, trial.Err)
		if known[trial.Epochs] == nil {
			known[trial.Epochs] = map[int]float64{}
		}
		if trial.Epochs > 1 {
			of := known[trial.Epochs/2]
			better := 0
			for _, v := range of {
				if v < of[trial.Number] {
					better++
				}
			}
			require.Less(t, better, len(of)/2, "trial %d with %d epochs", trial.Number, trial.Epochs)
			continued++
		}
		known[trial.Epochs][trial.Number] = trial.Value
	}
	found, err := s.Run(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, continued, 4+2)
	ends := func(epochs int) (all []int) {
		for n := range known[epochs] {
			all = append(all, n)
		}
		slices.SortFunc(all, func(a, b int) int {
			if known[epochs][a] < known[epochs][b] {
				return -1
			}
			return 1
		})
		return all
	}
	require.Len(t, known[1], 9)
	for _, n := range ends(1)[:4] {
		require.Contains(t, known[2], n, "the best half continues")
	}

	s.Dir, s.OnTrial = t.TempDir(), nil
	together(t, s, 3)
	again, err := s.Run(t.Context())
	require.NoError(t, err)
	require.Len(t, again.Trials, len(found.Trials))
}

// A Bayesian search that was cancelled continues with the trial that it drew, and has the same table; parallel Runs
// draw different trials.
func TestSearch_bayesian(t *testing.T) {
	bayesian := func(s selection.Search) selection.Search { s.Bayesian = true; return s }
	want, err := bayesian(several(t, t.TempDir(), 13, func(*selection.Parameters, int64) {})).Run(t.Context())
	require.NoError(t, err)
	why, stops := errors.New("enough"), 0
	ctx, cancel := context.WithCancelCause(t.Context())
	s := bayesian(several(t, t.TempDir(), 13, func(p *selection.Parameters, epoch int64) {
		if p.Number == 11 && epoch == 2 && stops == 0 {
			stops++
			cancel(why)
		}
	}))
	_, err = s.Run(ctx)
	require.ErrorIs(t, err, why)
	found, err := s.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, table(t, want), table(t, found))

	s = bayesian(several(t, t.TempDir(), 13, func(*selection.Parameters, int64) {}))
	tables := together(t, s, 3)
	require.Equal(t, tables[0], tables[1])
	found, err = s.Run(t.Context())
	require.NoError(t, err)
	different := map[string]bool{}
	for _, trial := range found.Trials {
		different[fmt.Sprint(trial.Parameters)] = true
	}
	require.Len(t, different, 13)
}

// A trial ends when it is worse than the median of the others, and never the best one.
func TestSearch_prunes(t *testing.T) {
	values := map[int][]float64{}
	want, err := several(t, t.TempDir(), 12, func(*selection.Parameters, int64) {}).Run(t.Context())
	require.NoError(t, err)
	s := several(t, t.TempDir(), 12, func(*selection.Parameters, int64) {})
	s.PruneAfter = 2
	pruned := 0
	s.OnTrial = func(trial selection.Trial) {
		if trial.Pruned {
			pruned++
			require.GreaterOrEqual(t, trial.Number, 5)
			require.Less(t, trial.Epochs, 4)
			require.GreaterOrEqual(t, trial.Epochs, 2)
		} else {
			require.Equal(t, 4, trial.Epochs)
		}
		values[trial.Number] = append(values[trial.Number], trial.Value)
	}
	found, err := s.Run(t.Context())
	require.NoError(t, err)
	require.Positive(t, pruned)
	best, _ := want.Best()
	got, _ := found.Best()
	require.Equal(t, best, got)
	again, err := s.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, table(t, found), table(t, again))
	require.Equal(t, 2*12, func() (n int) {
		for _, v := range values {
			n += len(v)
		}
		return n
	}())
}
