package callbacks_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// weights is a state whose steps add up their numbers, so that the sum identifies the steps in it.
type weights struct{ sum float64 }

func (w *weights) Snapshot(context.Context) (loop.Snapshot, error) {
	return &weightsCopy{w, w.sum}, nil
}

type weightsCopy struct {
	of  *weights
	sum float64
}

func (c *weightsCopy) Restore(context.Context) error { c.of.sum = c.sum; return nil }

func (c *weightsCopy) Close() error { return nil }

// fault spoils the sum in one step. A late one shows in the loss of the next step only, as where a gradient overflows.
type fault struct {
	at   int
	with float64
	late bool
}

// next is the sum after a step, and the loss.
func (f fault) next(sum float64, step int) (next, loss float64) {
	next, loss = sum+float64(step), 1+0*sum
	if step == f.at {
		next = f.with
		if !f.late {
			loss = f.with
		}
	}
	return next, loss
}

const faultySteps = 60

// run trains with the fault; a watcher notes the state after each turn, as a checkpoint would.
func (f fault) run(t *testing.T, inPlace bool, policy loop.Option) (sum float64, saved []float64, steps int64, reason loop.Reason, err error) {
	save := loop.Watch(loop.EachStep, func(_ context.Context, r loop.Report) error {
		switch s := r.State().(type) {
		case float64:
			saved = append(saved, s)
		case *weights:
			saved = append(saved, s.sum)
		}
		return nil
	})
	if inPlace {
		result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, w *weights, i int) (*weights, loop.Logs, error) {
			var logs loop.Logs
			var loss float64
			w.sum, loss = f.next(w.sum, i+1)
			logs.Loss("loss", loss)
			return w, logs, nil
		}))).Run(t.Context(), &weights{}, numbers(faultySteps), save, policy)
		return result.State.sum, saved, result.Elapsed.Steps, result.Reason, err
	}
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s float64, i int) (float64, loop.Logs, error) {
		var logs loop.Logs
		s, loss := f.next(s, i+1)
		logs.Loss("loss", loss)
		return s, logs, nil
	}))).Run(t.Context(), 0.0, numbers(faultySteps), save, policy)
	return result.State, saved, result.Elapsed.Steps, result.Reason, err
}

// between is the sum of the numbers from one to another.
func between(from, to int) (sum float64) {
	for i := from; i <= to; i++ {
		sum += float64(i)
	}
	return sum
}

func bads(values []float64) (n int) {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			n++
		}
	}
	return n
}

func TestF12_nonFinite(t *testing.T) {
	all := between(1, faultySteps)
	for _, policy := range []callbacks.Recovery{{}, {Limit: 2}, {Limit: 1, Copies: loop.Every(loop.Steps(7))}} {
		respected, total, badSaves, lateSaves := 0, 0, 0, 0
		for k := 1; k <= 50; k++ {
			for _, with := range []float64{nan, inf, -inf} {
				for _, late := range []bool{false, true} {
					for _, inPlace := range []bool{false, true} {
						f := fault{at: k, with: with, late: late}
						name := fmt.Sprintf("%s %+v in place %v", policy, f, inPlace)
						found := k // the turn in which it shows
						if late {
							found = k + 1
						}
						undone := 0
						if policy.Limit > 0 {
							policy.OnUndo = func(_ context.Context, _ loop.Report, cause error) error {
								require.ErrorIs(t, cause, loop.ErrNonFinite)
								undone++
								return nil
							}
						}
						sum, saved, steps, reason, err := f.run(t, inPlace, callbacks.NonFinite(policy))
						total++
						switch policy.String() {
						case "fail run":
							require.ErrorIs(t, err, loop.ErrNonFinite, name)
							require.Equal(t, loop.Failed, reason, name)
							require.EqualValues(t, found, steps, name)
							require.Len(t, saved, found-1, "no other watcher saw the bad turn")
						case "skip turn":
							require.NoError(t, err, name)
							want := all - float64(k)
							if late { // the first try leads back to the spoiled state
								want = all - between(k, k+2)
							}
							require.Equal(t, want, sum, name)
							require.Equal(t, map[bool]int{false: 1, true: 2}[late], undone)
						case "restore copy":
							require.NoError(t, err, name)
							copied := max(found-2, 0) / 7 * 7
							require.Equal(t, all-between(copied+1, found), sum, name)
							require.Equal(t, 1, undone)
						}
						if policy.String() != "fail run" {
							require.EqualValues(t, faultySteps, steps, "the counts go on")
							require.Equal(t, loop.DataEnded, reason)
						}
						if late { // the step before it had a finite loss
							lateSaves += bads(saved)
						} else {
							badSaves += bads(saved)
						}
						respected++
					}
				}
			}
		}
		require.Zero(t, badSaves)
		t.Logf("F12: %s: respected in %d of %d runs; states not finite that later watchers saw: %d, and %d where the loss showed it a step late",
			policy, respected, total, badSaves, lateSaves)
	}
}

func TestF12_limits(t *testing.T) {
	for _, policy := range []callbacks.Recovery{{Limit: 2}, {Limit: 2, Copies: loop.Every(loop.Steps(2))}} {
		l, data := following("x", 1, 1, 1, 1, inf, 1, 1, nan, 1, 1, nan, 1)
		var undone []int64
		result, err := l.Run(t.Context(), 0, data, callbacks.NonFinite(policy, callbacks.Recovery{OnUndo: func(_ context.Context, r loop.Report, _ error) error {
			undone = append(undone, r.Elapsed.Steps)
			return nil
		}}))
		require.ErrorIs(t, err, loop.ErrNonFinite)
		require.ErrorContains(t, err, "losses.x is NaN: not a finite number; the limit of "+policy.String()+" is reached: 2 were undone already")
		require.Equal(t, loop.Failed, result.Reason)
		require.EqualValues(t, 11, result.Elapsed.Steps)
		require.Equal(t, []int64{5, 8}, undone)
		require.Less(t, result.State, 11, "what comes back is an earlier state")
	}
	l := loop.New(loop.On(loop.AtStart, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("x_test", nan)
		return s, logs, nil
	})))
	_, err := l.Run(t.Context(), 0, numbers(2), callbacks.NonFinite(callbacks.Recovery{Limit: 9}))
	require.ErrorIs(t, err, loop.ErrNonFinite)
	require.ErrorContains(t, err, "there is no earlier copy: the first values seen are bad")
}

// A state that nothing has shown to be good must not become the copy to go back to.
func TestNonFinite_provenCopies(t *testing.T) {
	for _, row := range []struct {
		name   string
		policy callbacks.Recovery
		spoil  []int // steps that spoil the state under a good loss
		logged int   // every how many steps there is a loss
		undone []int64
		lost   []int // steps that are not in the state in the end
	}{
		{name: "a copy of the spoiled state is dropped", policy: callbacks.Recovery{Limit: 2, Copies: loop.Every(loop.Steps(5))}, spoil: []int{5, 9}, logged: 1,
			undone: []int64{6, 10}, lost: []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		{name: "turns without a loss show nothing", policy: callbacks.Recovery{Limit: 1, Copies: loop.EachStep}, spoil: []int{4}, logged: 3, undone: []int64{6}, lost: []int{3, 4, 5, 6}},
		{name: "nor do they between two bad ones", policy: callbacks.Recovery{Limit: 2}, spoil: []int{4}, logged: 3, undone: []int64{6, 9}, lost: []int{3, 4, 5, 6, 7, 8, 9}},
	} {
		t.Run(row.name, func(t *testing.T) {
			step := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s float64, i int) (float64, loop.Logs, error) {
				var logs loop.Logs
				if (i+1)%row.logged == 0 {
					logs.Loss("loss", 0*s)
				}
				if slices.Contains(row.spoil, i+1) {
					return nan, logs, nil
				}
				return s + float64(i+1), logs, nil
			}))

			var undone []int64
			note := callbacks.Recovery{OnUndo: func(_ context.Context, r loop.Report, _ error) error {
				undone = append(undone, r.Elapsed.Steps)
				return nil
			}}
			result, err := loop.New(step).Run(t.Context(), 0.0, numbers(15), callbacks.NonFinite(row.policy, note))
			require.NoError(t, err)
			want := between(1, 15)
			for _, step := range row.lost {
				want -= float64(step)
			}
			require.Equal(t, row.undone, undone)
			require.Equal(t, want, result.State)
		})
	}
}
