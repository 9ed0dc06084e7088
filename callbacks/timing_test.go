package callbacks_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

func TestStopwatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s callbacks.Stopwatch
		require.Zero(t, s.Timing().Total)
		time.Sleep(time.Hour) // before it begins
		for i, d := range []time.Duration{5, 1, 2} {
			s.At("data")
			time.Sleep(d * time.Second)
			s.At("step")
			time.Sleep(10 * time.Second)
			if i == 0 {
				time.Sleep(time.Minute)
			}
		}
		got := s.Timing()
		require.Equal(t, callbacks.Timing{Total: 98 * time.Second, Parts: []callbacks.Part{
			{Name: "data", Calls: 3, Total: 8 * time.Second, Longest: 5 * time.Second, First: 5 * time.Second},
			{Name: "step", Calls: 3, Total: 90 * time.Second, Longest: 70 * time.Second, First: 70 * time.Second},
		}}, got)
		require.Equal(t, 10*time.Second, got.Parts[1].Mean(), "without the first")
		require.Equal(t, time.Second, callbacks.Part{Calls: 1, Total: time.Second, First: time.Second}.Mean())
	})
}

// measuredRun returns the timing of a run. It skips the test as long as run.at does not inform the stopwatches.
func measuredRun(t *testing.T, l loop.Loop[int, sized], data loop.Data[sized], options ...loop.Option) (timing callbacks.Timing, err error) {
	calls := 0
	_, err = l.Run(t.Context(), 0, data, append(options, callbacks.Measure(func(got callbacks.Timing) { timing = got; calls++ }))...)
	require.Equal(t, 1, calls)
	return timing, err
}

func TestB40_measureWhereTheTimeGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		compiled := false
		step := func(_ context.Context, s int, b sized) (int, loop.Logs, error) {
			if !compiled {
				compiled = true
				time.Sleep(20 * time.Second)
			}
			time.Sleep(2 * time.Second)
			return s, loop.Logs{}, nil
		}
		test := func(_ context.Context, s int, b sized) (int, loop.Logs, error) {
			time.Sleep(5 * time.Second)
			return s, loop.Logs{}, nil
		}
		data := func(yield func(sized, error) bool) {
			for range 4 {
				time.Sleep(time.Second)
				if !yield(make(sized, 8), nil) {
					return
				}
			}
		}
		save := attend("save", loop.Every(loop.Steps(4)), func() loop.Attendant {
			return &attendant{watch: func() { time.Sleep(3 * time.Second) }, end: func() { time.Sleep(time.Second) }}
		})
		l := loop.New(loop.On(loop.EachStep, loop.StepFunc(step)).Named("train"), loop.On(loop.Every(loop.Steps(2)), loop.StepFunc(test)).Named("test"))
		timing, err := measuredRun(t, l, data, save)
		require.NoError(t, err)
		require.Equal(t, 46*time.Second, timing.Total)
		require.EqualValues(t, 4, timing.Steps)
		require.EqualValues(t, 32, timing.Samples)
		require.InDelta(t, 4.0/46, timing.StepsPerSecond(), 1e-9)
		require.InDelta(t, 32.0/46, timing.SamplesPerSecond(), 1e-9, "which does not need the steps a second")
		want := map[string]callbacks.Part{
			"data":                {Total: 4 * time.Second, Longest: time.Second, First: time.Second},
			"each step: train":    {Kind: "task", Calls: 4, Total: 28 * time.Second, Longest: 22 * time.Second, First: 22 * time.Second},
			"every 2 steps: test": {Kind: "task", Calls: 2, Total: 10 * time.Second, Longest: 5 * time.Second, First: 5 * time.Second},
			"every 4 steps: save": {Kind: "callback", Calls: 3, Total: 4 * time.Second, Longest: 3 * time.Second},
			"at end: measure":     {Kind: "callback"},
		}
		sum := time.Duration(0)
		for _, p := range timing.Parts {
			sum += p.Total
			w, ok := want[p.Name]
			require.True(t, ok, p.Name)
			w.Name = p.Name
			if w.Calls == 0 {
				w.Calls = p.Calls // the loop turns to the data more than once for the first batch
			}
			require.Equal(t, w, p)
		}
		require.Len(t, timing.Parts, len(want))
		require.Equal(t, timing.Total, sum)
	})
}

func TestMeasure_tellsOfARunThatFailed(t *testing.T) {
	boom := errors.New("boom")
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s int, b sized) (int, loop.Logs, error) {
		if len(b) == 3 {
			return s, loop.Logs{}, boom
		}
		return s, loop.Logs{}, nil
	})))
	timing, err := measuredRun(t, l, batchesOf(1, 2, 3))
	require.ErrorIs(t, err, boom)
	require.EqualValues(t, 2, timing.Steps)
}

func TestMeasure_needsAFunction(t *testing.T) {
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(1), callbacks.Measure(nil))
	require.EqualError(t, err, "loop: callback 1 (at end: measure): no function given")
}
