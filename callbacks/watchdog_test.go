package callbacks_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// slowPlaces is a loop with its options in which everything calls at with its own name.
func slowPlaces(at func(place string)) (loop.Loop[int, int], loop.Data[int], []loop.Option) {
	step := func(place string) func(context.Context, int, int) (int, loop.Logs, error) {
		return func(_ context.Context, s, _ int) (int, loop.Logs, error) {
			at(place)
			return s + 1, loop.Logs{}, nil
		}
	}
	test := loop.Evaluation[int, int]{Name: "test", Loop: loop.New(loop.On(loop.EachStep, loop.StepFunc(step("inner step")))),
		Data: loop.From(func(position int64) iter.Seq2[int, error] { at("inner data"); return numbers(2).From(position) })}
	data := func(yield func(int, error) bool) {
		for i := range 3 {
			if !yield(i, nil) {
				return
			}
			at("data")
		}
	}
	turn := func(_ context.Context, turn *loop.Turn[int, int]) error {
		at("turn")
		turn.Logs.Metric("m", 1)
		return nil
	}
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(step("task"))).Named("train"), loop.OnTurn(loop.EachStep, turn),
		test.On(loop.At(loop.Steps(2))), loop.On(loop.AtEnd, loop.StepFunc(step("last task"))))
	return l, data, []loop.Option{
		loop.Watch(loop.Every(loop.Steps(2)), func(context.Context, loop.Report) error { at("watcher"); return nil }),
		loop.WatchEntry("m", func(context.Context, loop.Report) error { at("entry"); return nil }),
		attend("attendant", loop.AtStart, func() loop.Attendant {
			at("start")
			return &attendant{watch: func() { at("start of turns") }, end: func() { at("end") }}
		}),
	}
}

func TestF15_watchdogReportsAHangOnce(t *testing.T) {
	reported := 0
	for _, row := range []struct {
		place, want string
		inSecond    bool // it hangs at the second call
	}{
		{"start", "loop: step 0: at start: attendant: no end after ", false},
		{"start of turns", "loop: step 0: at start: attendant: no end after ", false},
		{"task", "loop: step 1: each step: train: no end after ", false},
		{"turn", "loop: step 2: each step: no end after ", true},
		{"entry", "loop: step 1: on each m: no end after ", false},
		{"watcher", "loop: step 2: every 2 steps: no end after ", false},
		{"data", "loop: step 3: data: no end after ", true},
		{"inner data", "loop: step 2: at 2 steps: evaluation test: no end after ", false},
		{"inner step", "loop: step 2: at 2 steps: evaluation test: no end after ", true},
		{"last task", "loop: step 3: at end: no end after ", false},
		{"end", "loop: step 3: at start: attendant: no end after ", false},
	} {
		t.Run(row.place, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // it fails where a goroutine is left
				calls := 0
				l, data, options := slowPlaces(func(place string) {
					if place != row.place {
						return
					}
					if calls++; calls == 1 && !row.inSecond || calls == 2 && row.inSecond {
						hangsInside()
					}
				})
				var out bytes.Buffer
				result, err := l.Run(t.Context(), 0, data, append(options, callbacks.Watchdog(10*time.Second, &out))...)
				require.NoError(t, err, "the run is left alone")
				require.Equal(t, 4, result.State)

				text := out.String()
				require.True(t, strings.HasPrefix(text, row.want), text)
				require.Equal(t, 1, strings.Count(text, "no end after"))
				waited, err := time.ParseDuration(regexp.MustCompile("after (.*)\n").FindStringSubmatch(text)[1])
				require.NoError(t, err)
				require.GreaterOrEqual(t, waited, 10*time.Second)
				require.LessOrEqual(t, waited, 11*time.Second)
				require.Contains(t, text, "callbacks_test.hangsInside", "the stacks say where it hangs")
				reported++
			})
		})
	}
	t.Logf("F15: %d of %d hangs reported once, within 1.1 times the limit, with stacks", reported, 11)
}

//go:noinline
func hangsInside() { time.Sleep(time.Hour) }

func TestF15_watchdogIsSilentWhileThingsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, data, options := slowPlaces(func(string) { time.Sleep(3 * time.Second) }) // an evaluation has three of them
		var out bytes.Buffer
		result, err := l.Run(t.Context(), 0, data, append(options, callbacks.Watchdog(10*time.Second, &out))...)
		require.NoError(t, err)
		require.Empty(t, out.String())
		t.Logf("F15: %s of slow steps, 0 reports", result.Elapsed.Time)
	})
}

func TestF15_watchdogReportsEachHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, n int) (int, loop.Logs, error) {
			time.Sleep(time.Duration(n%2) * time.Minute)
			return s, loop.Logs{}, nil
		}))

		var out bytes.Buffer
		_, err := loop.New(slow).Run(t.Context(), 0, numbers(6), callbacks.Watchdog(time.Second, &out))
		require.NoError(t, err)
		require.Equal(t, []string{"loop: step 2:", "loop: step 4:", "loop: step 6:"}, regexp.MustCompile("loop: step .:").FindAllString(out.String(), -1))
	})
}

type panickingWriter struct{ writes int }

func (w *panickingWriter) Write([]byte) (int, error) { w.writes++; panic("boom") }

func TestF15_watchdogWithABrokenWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
			time.Sleep(time.Minute)
			return s + 1, loop.Logs{}, nil
		}))

		failing, panicking := &brokenPipe{}, &panickingWriter{}
		for _, w := range []io.Writer{failing, panicking} {
			result, err := loop.New(hang).Run(t.Context(), 0, numbers(3), callbacks.Watchdog(time.Second, w))
			require.NoError(t, err)
			require.Equal(t, 3, result.State)
		}
		require.Equal(t, 3, failing.writes)
		require.Equal(t, 3, panicking.writes)
	})
}

func TestWatchdog_refusesBadSettings(t *testing.T) {
	for _, row := range []struct {
		limit time.Duration
		out   io.Writer
		err   string
	}{
		{0, io.Discard, "loop: callback 1 (never: watchdog): limit must be positive, got 0s"},
		{-time.Second, io.Discard, "loop: callback 1 (never: watchdog): limit must be positive, got -1s"},
		{time.Second, nil, "loop: callback 1 (never: watchdog): no writer given"},
	} {
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(1), callbacks.Watchdog(row.limit, row.out))
		require.EqualError(t, err, row.err)
	}
}

// lines takes the first line of each report.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	line, _, _ := strings.Cut(string(p), "\n")
	l <- line
	return len(p), nil
}

// A stuck loop reports its activity. Here the stuck step waits for the report.
func ExampleWatchdog() {
	reports := make(lines)
	step := func(_ context.Context, s, n int) (int, loop.Logs, error) {
		if n == 3 {
			report, _, _ := strings.Cut(<-reports, " after")
			fmt.Println(report)
		}
		return s + 1, loop.Logs{}, nil
	}
	training := loop.New(loop.On(loop.EachStep, loop.StepFunc(step)).Named("train step"))
	_, err := training.Run(context.Background(), 0, numbers(5), callbacks.Watchdog(100*time.Millisecond, reports))
	fmt.Println(err)
	// Output:
	// loop: step 4: each step: train step: no end
	// <nil>
}
