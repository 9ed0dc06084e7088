package callbacks_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// cell is a state that changes in place and can be copied. Its copies are counted.
type cell struct {
	n            int
	rate         float64
	taken, freed int
	fail         error
	failFree     error
}

type cellCopy struct {
	of   *cell
	n    int
	rate float64
}

func (c *cell) Snapshot(context.Context) (loop.Snapshot, error) {
	if c.fail != nil {
		return nil, c.fail
	}
	c.taken++
	return &cellCopy{c, c.n, c.rate}, nil
}

func (s *cellCopy) Restore(context.Context) error { s.of.n, s.of.rate = s.n, s.rate; return nil }
func (s *cellCopy) Close() error                  { s.of.freed++; return s.of.failFree }

func (c *cell) LearningRate() (float64, error)     { return c.rate, nil }
func (c *cell) SetLearningRate(rate float64) error { c.rate = rate; return nil }

// followingInPlace is following with a state that changes in place.
func followingInPlace(entry string, values ...float64) (loop.Loop[*cell, int], loop.Data[int]) {
	step := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, c *cell, i int) (*cell, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss(entry, values[i])
		c.n = i + 1
		return c, logs, nil
	}))

	return loop.New(step), numbers(len(values))
}

func TestKeepBest_endings(t *testing.T) {
	boom := errors.New("boom")
	at := func(n int64, err error) loop.Option {
		return loop.Watch(loop.At(loop.Steps(n)), func(context.Context, loop.Report) error { return err })
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	values := []float64{5, 3, 4, 6, 7, 8}
	for _, row := range []struct {
		name    string
		ctx     context.Context
		options []loop.Option
		steps   int64
		state   int
		err     error
	}{
		{name: "the data is over", steps: 6, state: 2},
		{name: "until", options: []loop.Option{loop.Until(loop.Steps(4))}, steps: 4, state: 2},
		{name: "stopped by somebody", options: []loop.Option{at(3, loop.ErrStop)}, steps: 3, state: 2},
		{name: "stopped early", options: []loop.Option{callbacks.StopEarly("x", callbacks.Evaluations(3), callbacks.Monitor{Mode: loop.Lowest})}, steps: 5, state: 2},
		{name: "no value was better", options: []loop.Option{callbacks.KeepBest("x", callbacks.Monitor{Baseline: new(0.0), Mode: loop.Lowest})}, steps: 6, state: 6},
		{name: "a failed run keeps its last state", options: []loop.Option{at(5, boom)}, steps: 5, state: 5, err: boom},
		{name: "a cancelled run keeps its last state", ctx: ctx, options: []loop.Option{loop.Watch(loop.At(loop.Steps(5)),
			func(context.Context, loop.Report) error { cancel(boom); return nil })}, steps: 5, state: 5, err: boom},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.ctx == nil {
				row.ctx = t.Context()
			}
			options := row.options
			if row.name != "no value was better" {
				options = append(options, callbacks.KeepBest("x", callbacks.Monitor{Mode: loop.Lowest}))
			}
			l, data := followingInPlace("x", values...)
			c := &cell{}
			result, err := l.Run(row.ctx, c, data, options...)
			require.ErrorIs(t, err, row.err)
			require.Equal(t, row.steps, result.Elapsed.Steps)
			require.Same(t, c, result.State)
			require.Equal(t, row.state, result.State.n)
			require.Equal(t, c.taken, c.freed, "copies are freed")
		})
	}
	l, data := following("x", values...)
	result, err := l.Run(t.Context(), 0, data, callbacks.KeepBest("x", callbacks.Monitor{Mode: loop.Lowest}))
	require.NoError(t, err)
	require.Equal(t, 2, result.State, "a plain value is its own copy")
	best, when, err := result.History.Best("x", loop.Lowest)
	require.NoError(t, err)
	require.Equal(t, 3.0, best)
	require.EqualValues(t, 2, when.Steps)
}

// The state before the first step can be the best one, if it is evaluated.
func TestKeepBest_atTheStart(t *testing.T) {
	step := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s + 1, loop.Logs{}, nil }))
	evaluate := loop.On(loop.Every(loop.Steps(2)).AndAtStart(), loop.StepFunc(evaluation))
	result, err := loop.New(step, evaluate).Run(t.Context(), 7, numbers(6), callbacks.KeepBest("evaluated", callbacks.Monitor{Mode: loop.Lowest}))
	require.NoError(t, err)
	require.Equal(t, 7, result.State)
	require.EqualValues(t, 6, result.Elapsed.Steps)
}

// Those before it among the options hear of the end after it.
func TestKeepBest_orderOfEnds(t *testing.T) {
	var seen []int
	look := func() loop.Option {
		return attend("look", loop.EachStep, func() loop.Attendant {
			return atEnd(func(e loop.Ending) { seen = append(seen, e.State().(int)) })
		})
	}
	l, data := following("x", 1, 2, 3)
	_, err := l.Run(t.Context(), 0, data, look(), callbacks.KeepBest("x", callbacks.Monitor{Mode: loop.Lowest}), look())
	require.NoError(t, err)
	require.Equal(t, []int{3, 1}, seen)
}

type atEnd func(loop.Ending)

func (atEnd) Watch(context.Context, loop.Report) error     { return nil }
func (f atEnd) End(_ context.Context, e loop.Ending) error { f(e); return nil }

func TestKeepBest_byHand(t *testing.T) {
	keep, err := callbacks.KeepBest("x", callbacks.Monitor{Mode: loop.Lowest}).Start(loop.Beginning{})
	require.NoError(t, err)
	state := 0
	var logs loop.Logs
	for i, x := range []float64{3, 1, 2} {
		state = i + 1
		logs.Loss("x", x)
		require.NoError(t, keep.Watch(t.Context(), loop.Report{Logs: logs}.With(&state)))
	}
	failed := loop.Ending{Report: loop.Report{}.With(&state), Err: errors.New("boom")}
	again, err := callbacks.KeepBest("x", callbacks.Monitor{Mode: loop.Highest}).Start(loop.Beginning{})
	require.NoError(t, err)
	require.NoError(t, again.Watch(t.Context(), loop.Report{Logs: logs}.With(new(int))))
	require.NoError(t, again.End(t.Context(), failed))
	require.Equal(t, 3, state, "an error keeps the last state")
	require.NoError(t, keep.End(t.Context(), loop.Ending{Report: loop.Report{}.With(&state), Reason: loop.UntilReached}))
	require.Equal(t, 2, state)
	logs.Loss("x", 0)
	require.ErrorContains(t, keep.Watch(t.Context(), loop.Report{Logs: logs}), "the report has no state")
}

func TestOnBest_resumesAndPassesErrorsOn(t *testing.T) {
	boom := errors.New("disk full")
	l, data := following("x", 5, 3, 4)
	first, err := l.Run(t.Context(), 0, data)
	require.NoError(t, err)
	calls := 0
	l, data = following("x", 4, 3, 2)
	// Values after the point of resumption do not belong to the run's past.
	var beyond loop.Logs
	beyond.Loss("x", 0)
	first.History.Commit(loop.Elapsed{Steps: 4}, beyond, 1)
	_, err = l.Run(t.Context(), 0, rest(data), loop.Continue(first.Elapsed, first.History), callbacks.OnBest("x", func(_ context.Context, r loop.Report) error {
		calls++
		require.EqualValues(t, 6, r.Elapsed.Steps)
		return boom
	}, callbacks.Monitor{Mode: loop.Lowest}))
	require.ErrorIs(t, err, boom)
	require.Equal(t, 1, calls)
}

func TestHistory_Best(t *testing.T) {
	l, data := following("x", nan, inf, -inf)
	result, err := l.Run(t.Context(), 0, data)
	require.NoError(t, err)
	_, _, err = result.History.Best("x", loop.Lowest)
	require.ErrorIs(t, err, loop.ErrNonFinite)
	_, _, err = result.History.Best("y", loop.Lowest)
	require.ErrorIs(t, err, loop.ErrNoEntry)
	_, _, err = result.History.Best("x", loop.Mode(9))
	require.ErrorContains(t, err, "mode must be")
}

func TestOnBest_byHand(t *testing.T) {
	calls := 0
	best, err := byHand(callbacks.OnBest("x", func(context.Context, loop.Report) error { calls++; return nil }, callbacks.Monitor{Mode: loop.Lowest}))
	require.NoError(t, err)
	var logs loop.Logs
	for _, x := range []float64{3, 1, 2} {
		logs.Loss("x", x)
		require.NoError(t, best.Watch(t.Context(), loop.Report{Logs: logs}))
	}
	require.NoError(t, best.End(t.Context(), loop.Ending{}))
	require.Equal(t, 2, calls)
}

// A resumed run whose earlier part had the best value, and which finds none better, has no copy of that state. It
// returns an error.
func TestKeepBest_bestIsOfTheEarlierRun(t *testing.T) {
	keep := func() loop.Option { return callbacks.KeepBest("x", callbacks.Monitor{Mode: loop.Lowest}) }
	first, data := followingInPlace("x", 5, 3, 4)
	before, err := first.Run(t.Context(), &cell{}, data, keep())
	require.NoError(t, err)
	for _, row := range []struct {
		name   string
		values []float64
		state  int
		gone   bool
	}{
		{"no better one", []float64{6, 4, 7}, 3, true},
		{"a better one", []float64{6, 2, 7}, 2, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var history loop.History
			h := before.History
			require.NotNil(t, h)
			history = *h
			l, data := followingInPlace("x", row.values...)
			c, end := &cell{}, loop.Ending{}
			look := attend("look", loop.EachStep, func() loop.Attendant { return atEnd(func(e loop.Ending) { end = e }) })
			result, err := l.Run(t.Context(), c, rest(data), look, keep(), loop.Continue(before.Elapsed, &history))
			require.Equal(t, row.state, result.State.n)
			require.EqualValues(t, 6, result.Elapsed.Steps)
			require.Equal(t, c.taken, c.freed)
			require.Equal(t, loop.DataEnded, end.Reason, "the others end as ever")
			if !row.gone {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "the best state is lost")
			require.ErrorContains(t, err, `"x" was best in the earlier run, 3 at step 2, and its copy was not kept: the state is that of the last step, 6`)
			require.ErrorContains(t, err, `checkpoint.Options{Best: "x", Mode: loop.Lowest}`)
			_, values, err := result.History.Series("x")
			require.NoError(t, err)
			require.Len(t, values, 6, "the history is whole")
		})
	}
}
