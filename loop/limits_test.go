package loop_test

import (
	"context"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// hungry is a block stepper that would take any number of batches at once.
type hungry struct{ size int }

func (h hungry) BlockSize() int { return h.size }

func (h hungry) Step(_ context.Context, s, _ int) (int, loop.Logs, error) {
	return s + 1, loop.Logs{}, nil
}

func (h hungry) StepBlock(_ context.Context, s int, batches []int) (int, []loop.Logs, error) {
	return s + len(batches), make([]loop.Logs, len(batches)), nil
}

func TestF37_absurdLimits(t *testing.T) {
	const huge = 1 << 62
	count := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s + 1, metric("m", 1), nil }))
	rare := loop.On(loop.Every(loop.Steps(huge)), loop.StepFunc(add))
	cases := 0
	for _, row := range []struct {
		name    string
		tasks   []loop.Task[int, int] // nil for count
		data    loop.Data[int]        // nil for three batches
		options []loop.Option
		steps   int64
		reason  loop.Reason
		err     string
	}{
		{name: "until 0 steps", options: []loop.Option{loop.Until(loop.Steps(0))}, reason: loop.UntilReached},
		{name: "until 0 steps, data that never ends", data: forever, options: []loop.Option{loop.Until(loop.Steps(0))}, reason: loop.UntilReached},
		{name: "until 0 samples", options: []loop.Option{loop.Until(loop.Samples(0))}, reason: loop.UntilReached},
		{name: "until no time", options: []loop.Option{loop.Until(loop.Time(0))}, reason: loop.UntilReached},
		{name: "until 1970", options: []loop.Option{loop.Until(loop.Date(1))}, reason: loop.UntilReached, steps: 0},
		{name: "until huge", options: []loop.Option{loop.Until(loop.Steps(huge))}, steps: 3},
		{name: "until the most", options: []loop.Option{loop.Until(loop.Samples(math.MaxInt64))}, steps: 3},
		{name: "until negative", options: []loop.Option{loop.Until(loop.Steps(-1))}, reason: loop.Failed, err: "loop: until: period must be zero or positive, got -1 steps"},
		{name: "until nothing", options: []loop.Option{loop.Until(nil)}, reason: loop.Failed, err: "loop: until: period must be zero or positive, got <nil>"},
		{name: "no data", data: numbers(0)},
		{name: "no data, until huge", data: numbers(0), options: []loop.Option{loop.Until(loop.Steps(huge))}},
		{name: "data that never ends", data: forever, options: []loop.Option{loop.Until(loop.Steps(100))}, steps: 100, reason: loop.UntilReached},
		{name: "no tasks", tasks: []loop.Task[int, int]{}, data: forever, options: []loop.Option{loop.Until(loop.Steps(100))}, steps: 100, reason: loop.UntilReached},
		{name: "no tasks, no data", tasks: []loop.Task[int, int]{}, data: numbers(0)},
		{name: "thin huge", options: []loop.Option{loop.Thin(huge)}, steps: 3},
		{name: "thin negative", options: []loop.Option{loop.Thin(-huge)}, reason: loop.Failed, err: "loop: thin: rows must be positive, got -4611686018427387904"},
		{name: "every huge", tasks: []loop.Task[int, int]{count, rare}, steps: 3},
		{name: "every huge, until huge", tasks: []loop.Task[int, int]{count, rare}, options: []loop.Option{loop.Until(loop.Steps(huge))}, steps: 3},
		{name: "keep every huge", options: []loop.Option{loop.Keep(loop.Every(loop.Steps(huge)))}, steps: 3},
		{name: "block huge", tasks: []loop.Task[int, int]{loop.On(loop.EachStep, loop.Stepper[int, int](hungry{1 << 40}))}, steps: 3},
		{name: "block huge, data that never ends", tasks: []loop.Task[int, int]{loop.On(loop.EachStep, loop.Stepper[int, int](hungry{1 << 40}))}, data: forever,
			options: []loop.Option{loop.Until(loop.Steps(5000))}, steps: 5000, reason: loop.UntilReached},
		{name: "block negative", tasks: []loop.Task[int, int]{loop.On(loop.EachStep, loop.Stepper[int, int](hungry{-huge}))}, steps: 3},
		{name: "from huge", options: []loop.Option{loop.Continue(loop.Elapsed{Steps: huge, Samples: huge, Time: huge}, nil)}, steps: huge + 3},
		{name: "from beyond sums", options: []loop.Option{loop.Continue(loop.Elapsed{Samples: 1<<62 + 1}, nil)}, reason: loop.Failed, err: "loop: continue: elapsed must be at most 2^62 steps, samples, epochs and nanoseconds, got "},
		{name: "from negative", options: []loop.Option{loop.Continue(loop.Elapsed{Samples: -1}, nil)}, reason: loop.Failed, err: "loop: continue: elapsed must not be negative, got "},
		{name: "watch every huge", options: []loop.Option{loop.Watch(loop.Every(loop.Samples(huge)), nothing)}, steps: 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.tasks == nil {
				row.tasks = []loop.Task[int, int]{count}
			}
			if row.data == nil {
				row.data = numbers(3)
			}
			before := allocated()
			result, err := loop.New(row.tasks...).Run(t.Context(), 0, rest(row.data), row.options...)
			got := allocated() - before
			if row.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.err)
			}
			require.Equal(t, row.reason, result.Reason, result.Reason.String())
			require.Equal(t, row.steps, result.Elapsed.Steps)
			require.Less(t, got, uint64(1<<20), "bytes allocated: not by the limit")
			cases++
		})
	}
	t.Logf("F37: %d absurd limits: an error or what the documentation says, each in less than 1 MiB", cases)
}

// allocated is the number of bytes that were ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// The date of a row is that of the start with the monotonic time added to it, to the nanosecond. Read from the wall
// clock, which is set and slewed, it would not be; so a clock that jumps cannot move it.
func TestF36_datesMoveWithMonotonicTime(t *testing.T) {
	rows := 0
	check := func(h *loop.History) (start loop.Date) {
		for at := range h.Rows() {
			begin := at.Date - loop.Date(at.Time)
			require.True(t, start == 0 || start == begin, "step %d", at.Steps)
			start = begin
			rows++
		}
		return start
	}
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)))
	result, err := l.Run(t.Context(), 0, numbers(2000))
	require.NoError(t, err)
	check(result.History)

	synctest.Test(t, func(t *testing.T) {
		slow := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, n int) (int, loop.Logs, error) {
			time.Sleep(time.Minute)
			return s, metric("m", 1), nil
		}))

		begin := loop.Date(time.Now().UnixNano())
		first, err := loop.New(slow).Run(t.Context(), 0, numbers(30))
		require.NoError(t, err)
		require.Equal(t, begin, check(first.History))
		time.Sleep(24 * time.Hour) // the pause counts in the date, not in the active time
		second, err := loop.New(slow).Run(t.Context(), 0, rest(numbers(30)), loop.Continue(first.Elapsed, nil))
		require.NoError(t, err)
		require.Equal(t, time.Hour, second.Elapsed.Time)
		require.Equal(t, begin+loop.Date(24*time.Hour), check(second.History))
	})
	t.Logf("F36: %d rows, 0 of which have a date that is not their start and the monotonic time", rows)
}
