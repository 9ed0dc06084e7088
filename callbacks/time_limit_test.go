package callbacks_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// A time limit is of this run, Until(Time) of all of them.
func TestTimeLimit(t *testing.T) {
	for _, row := range []struct {
		name    string
		options []loop.Option
		seconds time.Duration // of active time in the end
		reason  loop.Reason
		stop    string
	}{
		{"ends the run", []loop.Option{callbacks.TimeLimit(3500 * time.Millisecond)}, 4, loop.Stopped,
			"loop: step 4: at 3.5s: time limit: this run has taken 4s, its limit is 3.5s: stop"},
		{"goes beside an end in steps", []loop.Option{callbacks.TimeLimit(3 * time.Second), loop.Until(loop.Steps(2))}, 2, loop.UntilReached, ""},
		{"of this run alone", []loop.Option{callbacks.TimeLimit(3 * time.Second), loop.Continue(loop.Elapsed{Steps: 10, Time: 10 * time.Second}, nil)}, 13, loop.Stopped,
			"loop: step 13: at 13s: time limit: this run has taken 3s, its limit is 3s: stop"},
		{"until a time counts the earlier runs", []loop.Option{loop.Until(loop.Time(12 * time.Second)), loop.Continue(loop.Elapsed{Steps: 10, Time: 10 * time.Second}, nil)}, 12, loop.UntilReached, ""},
		{"longer than there are numbers", []loop.Option{callbacks.TimeLimit(math.MaxInt64), loop.Continue(loop.Elapsed{Steps: 10, Time: 10 * time.Second}, nil)}, 40, loop.DataEnded, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
					time.Sleep(time.Second)
					var logs loop.Logs
					logs.Metric("n", 1)
					return s, logs, nil
				}))

				result, err := loop.New(slow).Run(t.Context(), 0, rest(numbers(30)), row.options...)
				require.NoError(t, err)
				require.Equal(t, row.seconds*time.Second, result.Elapsed.Time)
				require.Equal(t, row.reason, result.Reason)
				if row.stop != "" {
					require.EqualError(t, result.Stop, row.stop)
				}
			})
		})
	}
	for _, d := range []time.Duration{0, -time.Second} {
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(1), callbacks.TimeLimit(d))
		require.EqualError(t, err, "loop: callback 1 (never: time limit): it must be positive, got "+d.String())
	}
}
