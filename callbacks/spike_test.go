package callbacks_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

func TestWarnSpike(t *testing.T) {
	for _, row := range []struct {
		name   string
		window int
		values []float64
		want   []int64
	}{
		{"a spike", 3, []float64{1, 1, 1, 1, 9, 1}, []int64{5}},
		{"never before the window is full", 3, []float64{1, 100, 1, 1}, nil},
		{"the factor itself is none", 3, []float64{1, 1, 1, 3}, nil},
		{"a spike does not hide the next", 4, []float64{1, 1, 1, 1, 9, 9}, []int64{5, 6}},
		{"a new level is none after half of the window", 4, []float64{1, 1, 1, 1, 9, 9, 9, 9}, []int64{5, 6}},
		{"infinite", 2, []float64{1, 1, inf, 1}, []int64{3}},
		{"NaN is passed over", 2, []float64{1, nan, 1, nan, 9}, []int64{5}},
		{"nothing to compare with", 2, []float64{0, 0, 9, 0, -1, -1, 9}, nil},
		{"the median of two is between them", 2, []float64{1, 3, 6, 1, 3, 6.1}, []int64{6}},
		{"a window of one", 1, []float64{1, 4, 4, 20}, []int64{2, 4}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var steps []int64
			warn := func(_ context.Context, s callbacks.Spike) error {
				require.Equal(t, row.values[s.Elapsed.Steps-1], s.Value)
				require.Equal(t, row.window, s.Window)
				steps = append(steps, s.Elapsed.Steps)
				return nil
			}
			l, data := following("x", row.values...)
			option := callbacks.WarnSpike("x", 3, row.window, warn)
			_, err := l.Run(t.Context(), 0, data, option)
			require.NoError(t, err)
			require.Equal(t, row.want, steps)
			steps = nil
			_, err = l.Run(t.Context(), 0, data, option)
			require.NoError(t, err)
			require.Equal(t, row.want, steps, "the second run begins anew")
		})
	}
}

func TestWarnSpike_endsTheRun(t *testing.T) {
	for _, err := range []error{loop.ErrStop, errors.New("too wild")} {
		l, data := following("x", 2, 2, 2, 9, 1)
		result, got := l.Run(t.Context(), 0, data, callbacks.WarnSpike("x", 3, 3, func(_ context.Context, s callbacks.Spike) error {
			require.Equal(t, "step 4: x is 9, 4.5 times the median 2 of the last 3 values", s.String())
			return err
		}))
		require.EqualValues(t, 4, result.Elapsed.Steps)
		if err == loop.ErrStop {
			require.NoError(t, got)
		} else {
			require.ErrorIs(t, got, err)
		}
	}
}

func TestWarnSpike_refusesBadSettings(t *testing.T) {
	warn := func(context.Context, callbacks.Spike) error { return nil }
	for _, row := range []struct {
		err    string
		option loop.Option
	}{
		{"factor must be greater than 1 and finite, got 1", callbacks.WarnSpike("x", 1, 3, warn)},
		{"factor must be greater than 1 and finite, got NaN", callbacks.WarnSpike("x", nan, 3, warn)},
		{"window must be positive, got 0", callbacks.WarnSpike("x", 2, 0, warn)},
		{"no function given", callbacks.WarnSpike("x", 2, 3, nil)},
		{"no entry to watch", callbacks.WarnSpike("", 2, 3, warn)},
	} {
		l, data := following("x", 1)
		_, err := l.Run(t.Context(), 0, data, row.option)
		require.ErrorContains(t, err, row.err)
	}
	_, err := byHand(callbacks.WarnSpike("x", 2, 1, warn))
	require.NoError(t, err)
}
