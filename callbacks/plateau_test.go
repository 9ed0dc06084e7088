package callbacks_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

type cut struct {
	step     int64
	from, to float64
}

// cuts returns the reductions in a run over the values.
func cuts(t require.TestingT, values []float64, patience callbacks.Patience, options ...callbacks.Monitor) (all []cut) {
	l, data := followingInPlace("x", values...)
	note := callbacks.Monitor{OnReduce: func(_ context.Context, r loop.Report, from, to float64) error {
		all = append(all, cut{r.Elapsed.Steps, from, to})
		return nil
	}}
	_, err := l.Run(context.Background(), &cell{rate: 1}, data, callbacks.ReduceOnPlateau("x", 0.5, patience, append([]callbacks.Monitor{{Mode: loop.Lowest}}, append(options, note)...)...))
	require.NoError(t, err)
	return all
}

func TestReduceOnPlateau(t *testing.T) {
	flat := func(n int) []float64 { return make([]float64, n) }
	for _, row := range []struct {
		name     string
		values   []float64
		patience callbacks.Patience
		options  []callbacks.Monitor
		want     []cut
	}{
		{name: "again and again", values: flat(8), patience: callbacks.Evaluations(3), want: []cut{{4, 1, 0.5}, {7, 0.5, 0.25}}},
		{name: "in steps", values: flat(8), patience: loop.Steps(3), want: []cut{{4, 1, 0.5}, {7, 0.5, 0.25}}},
		{name: "what gets better has time", values: []float64{9, 8, 8, 7, 7, 6}, patience: callbacks.Evaluations(2)},
		{name: "a better value begins anew", values: []float64{9, 9, 8, 8, 8}, patience: callbacks.Evaluations(2), want: []cut{{5, 1, 0.5}}},
		{name: "cooldown", values: flat(9), patience: callbacks.Evaluations(2), options: []callbacks.Monitor{{Cooldown: callbacks.Evaluations(2)}}, want: []cut{{3, 1, 0.5}, {7, 0.5, 0.25}}},
		{name: "a cooldown of one passes over one", values: flat(7), patience: callbacks.Evaluations(2), options: []callbacks.Monitor{{Cooldown: callbacks.Evaluations(1)}},
			want: []cut{{3, 1, 0.5}, {6, 0.5, 0.25}}},
		{name: "cooldown in steps", values: flat(9), patience: callbacks.Evaluations(2), options: []callbacks.Monitor{{Cooldown: loop.Steps(2)}}, want: []cut{{3, 1, 0.5}, {7, 0.5, 0.25}}},
		{name: "better in the cooldown", values: []float64{5, 5, 5, 4, 4, 4}, patience: callbacks.Evaluations(2), options: []callbacks.Monitor{{Cooldown: callbacks.Evaluations(1)}},
			want: []cut{{3, 1, 0.5}, {6, 0.5, 0.25}}},
		{name: "the lowest rate", values: flat(20), patience: callbacks.Evaluations(2), options: []callbacks.Monitor{{MinRate: 0.3}}, want: []cut{{3, 1, 0.5}, {5, 0.5, 0.3}}},
		{name: "min delta", values: []float64{9, 8.9, 8.8, 8.7}, patience: callbacks.Evaluations(3), options: []callbacks.Monitor{{MinDelta: 1}}, want: []cut{{4, 1, 0.5}}},
		{name: "NaN is no better", values: []float64{9, nan, nan}, patience: callbacks.Evaluations(2), want: []cut{{3, 1, 0.5}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, cuts(t, row.values, row.patience, row.options...))
		})
	}
}

// Keras counts down two numbers. Up to its cooldown, which ends one value earlier, lazo reduces at the same values.
func TestReduceOnPlateau_asKeras(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.SampledFrom([]float64{1, 2, 3, nan}), 1, 40).Draw(rt, "values")
		patience, cooldown := rapid.IntRange(1, 4).Draw(rt, "patience"), rapid.IntRange(0, 4).Draw(rt, "cooldown")
		var want []int64
		best, waited, cooling := math.Inf(1), 0, 0
		for i, v := range values {
			inCooldown := cooling > 0
			cooling = max(cooling-1, 0)
			if v < best {
				best, waited = v, 0
			} else {
				waited++
			}
			if inCooldown {
				waited = 0
			}
			if waited >= patience {
				want, waited, cooling = append(want, int64(i+1)), 0, cooldown
			}
		}
		var got []int64
		for _, c := range cuts(rt, values, callbacks.Evaluations(patience), callbacks.Monitor{Cooldown: callbacks.Evaluations(cooldown)}) {
			got = append(got, c.step)
		}
		require.Equal(rt, want, got)
	})
}

func TestReduceOnPlateau_resumes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		values := rapid.SliceOfN(rapid.SampledFrom([]float64{1, 2, 3}), 2, 40).Draw(rt, "values")
		at := rapid.IntRange(1, len(values)-1).Draw(rt, "cut")
		option := callbacks.ReduceOnPlateau("x", 0.5, callbacks.Evaluations(2), callbacks.Monitor{Cooldown: loop.Steps(rapid.IntRange(0, 3).Draw(rt, "cooldown")), MinRate: 0.1, Mode: loop.Lowest})
		l, data := followingInPlace("x", values...)
		whole, err := l.Run(t.Context(), &cell{rate: 1}, data, option)
		require.NoError(rt, err)
		part, err := l.Run(t.Context(), &cell{rate: 1}, data, option, loop.Until(loop.Steps(at)))
		require.NoError(rt, err)
		left := func(yield func(int, error) bool) {
			for i := at; i < len(values) && yield(i, nil); i++ {
			}
		}
		resumed, err := l.Run(t.Context(), part.State, rest[int](left), option, loop.Continue(part.Elapsed, part.History))
		require.NoError(rt, err)
		require.Equal(rt, whole.State.rate, resumed.State.rate)
	})
}

func TestReduceOnPlateau_needsARate(t *testing.T) {
	l, data := following("x", 1, 2)
	result, err := l.Run(t.Context(), 0, data, callbacks.ReduceOnPlateau("x", 0.5, loop.Steps(1), callbacks.Monitor{Mode: loop.Lowest}))
	require.EqualError(t, err, "loop: at the start: step 0: on each x: reduce on plateau: a state of type int has no learning rate to change: give it the methods LearningRate and SetLearningRate that loop.Stepper lists")
	require.Zero(t, result.Elapsed.Steps)
}

func TestReduceOnPlateau_refusesBadSettings(t *testing.T) {
	for _, row := range []struct {
		err     string
		factor  float64
		options []callbacks.Monitor
	}{
		{err: "factor must lie between 0 and 1, got 1", factor: 1},
		{err: "factor must lie between 0 and 1, got 0", factor: 0},
		{err: "factor must lie between 0 and 1, got NaN", factor: nan},
		{err: "min rate must be zero or positive and finite, got -1", factor: 0.5, options: []callbacks.Monitor{{MinRate: -1}}},
		{err: "cooldown must be zero or positive, in Steps, Samples, Time or Evaluations, got -1 steps", factor: 0.5, options: []callbacks.Monitor{{Cooldown: loop.Steps(-1)}}},
	} {
		l, data := followingInPlace("x", 1)
		_, err := l.Run(t.Context(), &cell{}, data, callbacks.ReduceOnPlateau("x", row.factor, loop.Steps(1), append([]callbacks.Monitor{{Mode: loop.Lowest}}, row.options...)...))
		require.ErrorContains(t, err, row.err)
	}
	l, data := followingInPlace("x", 1)
	_, err := l.Run(t.Context(), &cell{}, data, callbacks.ReduceOnPlateau("x", 0.5, nil, callbacks.Monitor{Mode: loop.Lowest}))
	require.ErrorContains(t, err, "no patience given")
}

// stubborn is a state whose rate cannot be read or set.
type stubborn struct{ read, set error }

func (s stubborn) LearningRate() (float64, error) { return 1, s.read }
func (s stubborn) SetLearningRate(float64) error  { return s.set }

func TestReduceOnPlateau_byHand_andErrors(t *testing.T) {
	boom := errors.New("boom")
	for _, state := range []any{&cell{rate: 1}, stubborn{read: boom}, stubborn{set: boom}, 7, nil} {
		p, err := callbacks.ReduceOnPlateau("x", 0.5, callbacks.Evaluations(1), callbacks.Monitor{Mode: loop.Lowest}).Start(loop.Beginning{})
		require.NoError(t, err)
		var logs loop.Logs
		logs.Loss("x", 1)
		report := loop.Report{Logs: logs}
		if state != nil {
			report = report.With(&state)
		}
		require.NoError(t, p.Watch(t.Context(), report))
		err = p.Watch(t.Context(), report)
		switch s := state.(type) {
		case *cell:
			require.NoError(t, err)
			require.Equal(t, 0.5, s.rate)
		case stubborn:
			require.ErrorIs(t, err, boom)
		case int:
			require.ErrorContains(t, err, "a state of type int has no learning rate")
		default:
			require.ErrorContains(t, err, "the report has no state")
		}
	}
}

// unbuilt is a state that has no rate before its first step.
type unbuilt struct{ *cell }

func (u unbuilt) LearningRate() (float64, error) {
	if u.n == 0 {
		return 0, errors.New("no rate yet")
	}
	return u.cell.LearningRate()
}

// Of a state that has no rate at the start, the first value shows that it is below the lowest.
func TestMinRate_aboveTheRateOfTheFirstStep(t *testing.T) {
	run := func(lowest float64) error {
		step := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, u unbuilt, i int) (unbuilt, loop.Logs, error) {
			var logs loop.Logs
			logs.Loss("x", 1)
			u.n = i + 1
			return u, logs, nil
		}))

		_, err := loop.New(step).Run(t.Context(), unbuilt{&cell{rate: 0.001}}, numbers(4),
			callbacks.ReduceOnPlateau("x", 0.5, callbacks.Evaluations(1), callbacks.Monitor{MinRate: lowest, Mode: loop.Lowest}))
		return err
	}
	require.NoError(t, run(0.0009))
	require.ErrorContains(t, run(1), "step 1: ")
	require.ErrorContains(t, run(1), "the learning rate is 0.001, below MinRate, 1, so that it would never be reduced: expected a lower MinRate")
}

// A rate that begins below the lowest would never be reduced. It may begin at the lowest, as in a resumed run.
func TestMinRate_aboveTheRate(t *testing.T) {
	run := func(lowest float64) error {
		l, data := followingInPlace("x", 1, 1, 1)
		_, err := l.Run(t.Context(), &cell{rate: 0.1}, data, callbacks.ReduceOnPlateau("x", 0.5, callbacks.Evaluations(1), callbacks.Monitor{MinRate: lowest, Mode: loop.Lowest}))
		return err
	}
	require.NoError(t, run(0.1))
	err := run(0.5)
	require.ErrorContains(t, err, "the learning rate is 0.1, below MinRate, 0.5, so that it would never be reduced: expected a lower MinRate")
	require.ErrorContains(t, err, "reduce on plateau")
}
