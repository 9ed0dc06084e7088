package callbacks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

func TestB67_nanNamesTheEntry(t *testing.T) {
	l, data := following("mse", 1, nan, 2)
	result, err := l.Run(t.Context(), 0, data, callbacks.StopEarly("mse", loop.Steps(9)), callbacks.NonFinite())
	require.EqualError(t, err, "loop: step 2: each step, at start, at end: non-finite: fail run: losses.mse is NaN: not a finite number"+
		"\n  frequent causes: labels outside the classes, a learning rate too high, unscaled inputs, log or division of 0; strategies.Eager with strategies.CheckFinite names the operation")
	require.ErrorIs(t, err, loop.ErrNonFinite)
	require.Equal(t, loop.Failed, result.Reason)
	require.EqualValues(t, 2, result.Elapsed.Steps)
	require.Equal(t, 2, result.History.Len(), "the bad turn is in the history")
}

func TestNonFinite_whatIsLookedAt(t *testing.T) {
	values := []float64{1, nan, 1, nan, 1, 1}
	step := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, i int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss", 1)
		logs.Metric("norm", values[i])
		if i%3 == 2 {
			logs.Metric("rare", values[i])
		}
		return s + 1, logs, nil
	}))

	for _, row := range []struct {
		name    string
		options []callbacks.Recovery
		err     string
	}{
		{name: "losses alone"},
		{name: "a metric by name", options: []callbacks.Recovery{{Entries: []string{"loss", "metrics.norm"}}}, err: "loop: step 2: each step, at start, at end: non-finite: fail run: metrics.norm is NaN"},
		{name: "what is not in each turn", options: []callbacks.Recovery{{Entries: []string{"rare"}}}},
		{name: "now and then", options: []callbacks.Recovery{{Entries: []string{"norm"}}, callbacks.Recovery{When: loop.Every(loop.Steps(4))}},
			err: "loop: step 4: every 4 steps, at start, at end: non-finite: fail run: metrics.norm is NaN"},
		{name: "missed in between", options: []callbacks.Recovery{{Entries: []string{"norm"}}, callbacks.Recovery{When: loop.Every(loop.Steps(3))}}},
		{name: "never where it is looked for", options: []callbacks.Recovery{{Entries: []string{"rare"}}, callbacks.Recovery{When: loop.Every(loop.Steps(4))}},
			err: "rare was never checked: it was logged only in turns other than every 4 steps"},
		{name: "misspelt, now and then", options: []callbacks.Recovery{{Entries: []string{"nrm"}}, callbacks.Recovery{When: loop.Every(loop.Steps(3))}},
			err: `loop: step 3: on each nrm: non-finite: fail run: all tasks had a turn: no such entry: "nrm" (did you mean metrics.norm?); there are: losses.loss`},
		{name: "misspelt, found at once", options: []callbacks.Recovery{{Entries: []string{"nrm"}}}, err: `loop: step 3: `},
	} {
		t.Run(row.name, func(t *testing.T) {
			every3 := loop.On(loop.Every(loop.Steps(3)), loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s, loop.Logs{}, nil }))
			_, err := loop.New(step, every3).Run(t.Context(), 0, numbers(6), callbacks.NonFinite(row.options...))
			if row.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.err)
		})
	}
}

func TestNonFinite_refusesBadSettings(t *testing.T) {
	for _, row := range []struct {
		err    string
		policy callbacks.Recovery
	}{
		{err: "Copies or OnUndo is set, but without a limit no turn is undone", policy: callbacks.Recovery{Copies: loop.EachStep}},
		{err: "Copies or OnUndo is set, but without a limit no turn is undone", policy: callbacks.Recovery{OnUndo: func(context.Context, loop.Report, error) error { return nil }}},
		{err: "limit must not be negative, got -1", policy: callbacks.Recovery{Limit: -1}},
		{err: `copies must be due at some time, got "never"`, policy: callbacks.Recovery{Limit: 1, Copies: loop.Never}},
		{err: "copies: every 0 steps: period must be positive, got 0 steps", policy: callbacks.Recovery{Limit: 1, Copies: loop.Every(loop.Steps(0))}},
		{err: "without Copies each turn is checked: leave When out, or set Copies", policy: callbacks.Recovery{Limit: 1, When: loop.Every(loop.Steps(2))}},
		{err: "period must be positive, got 0 steps", policy: callbacks.Recovery{When: loop.Every(loop.Steps(0))}},
		{err: "malformed name: no entry to check", policy: callbacks.Recovery{Entries: []string{""}}},
	} {
		l, data := following("x", 1)
		_, err := l.Run(t.Context(), 0, data, callbacks.NonFinite(row.policy))
		require.ErrorContains(t, err, row.err)
	}
}

// A schedule of its own saves the reading.
func TestNonFinite_readsOnItsSchedule(t *testing.T) {
	for _, row := range []struct {
		options []callbacks.Recovery
		reads   int
	}{{nil, 100}, {[]callbacks.Recovery{{When: loop.Every(loop.Steps(25))}}, 4}} {
		reads := 0
		step := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
			var logs loop.Logs
			logs.Set(loop.Losses, "loss", counted{&reads})
			return s, logs, nil
		}))

		_, err := loop.New(step).Run(t.Context(), 0, numbers(100), callbacks.NonFinite(row.options...))
		require.NoError(t, err)
		require.Equal(t, row.reads, reads)
	}
}

func TestNonFinite_copiesAreFreed(t *testing.T) {
	for _, policy := range []callbacks.Recovery{{Limit: 5}, {Limit: 5, Copies: loop.Every(loop.Steps(2))}} {
		l, data := followingInPlace("x", 1, 1, nan, nan, 1, 1, 1, inf, 1)
		c := &cell{}
		_, err := l.Run(t.Context(), c, data, callbacks.NonFinite(policy))
		require.NoError(t, err)
		require.Positive(t, c.taken)
		require.LessOrEqual(t, c.taken, 1+9-3, "one at the start and one after each good turn at most")
		require.Equal(t, c.taken, c.freed)
	}
	boom := errors.New("no room")
	l, data := followingInPlace("x", 1, nan)
	_, err := l.Run(t.Context(), &cell{fail: boom}, data, callbacks.NonFinite(callbacks.Recovery{Limit: 1}))
	require.ErrorIs(t, err, boom)
	l, data = followingInPlace("x", 1, 1, 1, 1)
	result, err := l.Run(t.Context(), &cell{failFree: boom}, data, callbacks.NonFinite(callbacks.Recovery{Limit: 1}))
	require.ErrorIs(t, err, boom)
	require.EqualValues(t, 2, result.Elapsed.Steps, "the first copy that cannot be freed ends the run: each turn would hold one more")
}

// The rate can be lowered where the state goes back, or the run be ended.
func TestOnUndo_lowersTheRate(t *testing.T) {
	l, data := followingInPlace("x", 1, 1, nan, 1)
	c := &cell{rate: 1}
	lower := callbacks.Recovery{OnUndo: func(_ context.Context, r loop.Report, _ error) error {
		return r.State().(abilities.LearningRater).SetLearningRate(0.5)
	}}
	result, err := l.Run(t.Context(), c, data, callbacks.NonFinite(callbacks.Recovery{Limit: 1}, lower))
	require.NoError(t, err)
	require.Equal(t, 0.5, result.State.rate)
	stop := callbacks.Recovery{OnUndo: func(context.Context, loop.Report, error) error { return loop.ErrStop }}
	result, err = l.Run(t.Context(), c, data, callbacks.NonFinite(callbacks.Recovery{Limit: 1}, stop))
	require.NoError(t, err)
	require.Equal(t, loop.Stopped, result.Reason)
	require.Equal(t, 2, result.State.n)
}

func TestNonFinite_byHand(t *testing.T) {
	guard, err := callbacks.NonFinite(callbacks.Recovery{Limit: 1}).Start(loop.Beginning{})
	require.NoError(t, err)
	state := 0
	require.NoError(t, guard.Watch(t.Context(), loop.Report{}.With(&state)), "the first copy")
	for pass, err := range loop.Over(numbers(5)) {
		require.NoError(t, err)
		var logs loop.Logs
		logs.Loss("loss", map[bool]float64{false: 1, true: nan}[pass.Batch == 2])
		state += pass.Batch
		require.NoError(t, guard.Watch(t.Context(), pass.Report(logs, nil).With(&state)))
	}
	require.NoError(t, guard.End(t.Context(), loop.Ending{Report: loop.Report{}.With(&state)}))
	require.Equal(t, 0+1+3+4, state)
}

func TestNonFinite_aBadEvaluationAtTheEnd(t *testing.T) {
	step := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss", 1)
		return s + 1, logs, nil
	}))

	test := loop.On(loop.AtEnd, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss_test", nan)
		return s, logs, nil
	}))

	result, err := loop.New(step, test).Run(t.Context(), 0, numbers(5), callbacks.NonFinite(callbacks.Recovery{Limit: 1}))
	require.NoError(t, err)
	require.Equal(t, 4, result.State, "the state before, which has led to a finite loss")
	result, err = loop.New(step, test).Run(t.Context(), 0, numbers(5), callbacks.NonFinite())
	require.ErrorIs(t, err, loop.ErrNonFinite)
	require.Equal(t, loop.Failed, result.Reason)
}

func TestNonFinite_valuesThatCannotBeRead(t *testing.T) {
	boom := errors.New("the device is gone")
	step := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Set(loop.Losses, "x", broken{boom})
		logs.Loss("y", 1, loop.Metrics)
		return s, logs, nil
	}))

	for _, row := range []struct {
		option callbacks.Recovery
		want   error
	}{{callbacks.Recovery{}, boom}, {callbacks.Recovery{Entries: []string{"x"}}, boom}, {callbacks.Recovery{Entries: []string{"y"}}, errors.New("ambiguous name")}} {
		_, err := loop.New(step).Run(t.Context(), 0, numbers(1), callbacks.NonFinite(row.option))
		require.ErrorContains(t, err, row.want.Error())
	}
}

// blocky makes steps in blocks and notes how many at once.
type blocky struct{ most *int }

func (blocky) BlockSize() int { return 8 }

func (b blocky) Step(_ context.Context, s, _ int) (int, loop.Logs, error) {
	var logs loop.Logs
	logs.Loss("loss", 1)
	return s + 1, logs, nil
}

func (b blocky) StepBlock(ctx context.Context, s int, batches []int) (int, []loop.Logs, error) {
	*b.most = max(*b.most, len(batches))
	all := make([]loop.Logs, len(batches))
	for i, batch := range batches {
		s, all[i], _ = b.Step(ctx, s, batch)
	}
	return s, all, nil
}

func TestNonFinite_leavesBlocksTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct {
			options []callbacks.Recovery
			most    int
		}{
			{nil, 1},
			{[]callbacks.Recovery{{When: loop.Every(loop.Steps(32))}}, 8},
			{[]callbacks.Recovery{{When: loop.Every(loop.Steps(32))}, callbacks.Recovery{Entries: []string{"loss"}}}, 8},
		} {
			most := 0
			_, err := loop.New(loop.On(loop.EachStep, blocky{&most})).Run(t.Context(), 0, numbers(100), callbacks.NonFinite(row.options...), callbacks.TimeLimit(time.Hour))
			require.NoError(t, err)
			require.Equal(t, row.most, most)
		}
	})
}

func TestNonFinite_aRunThatIsOverAtOnce(t *testing.T) {
	l, _ := following("x", 1)
	for _, options := range [][]loop.Option{nil, {loop.Until(loop.Steps(0))}} {
		_, err := l.Run(t.Context(), 0, numbers(0), append(options, callbacks.NonFinite(callbacks.Recovery{Entries: []string{"x"}}))...)
		require.NoError(t, err, "there was nothing to check")
	}
}
