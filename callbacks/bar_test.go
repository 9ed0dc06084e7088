package callbacks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

func TestBar_showsAValueThatIsNotLoggedInEachStep(t *testing.T) {
	var out bytes.Buffer
	rare := loop.On(loop.Every(loop.Steps(7)), loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Metric("rare", 0.25)
		return s, logs, nil
	}))

	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), rare).Run(t.Context(), 0, numbers(9), callbacks.ProgressBar(&out))
	require.NoError(t, err)
	require.Contains(t, out.String(), "9 steps - ")
	require.Contains(t, out.String(), "rare: 0.2500")
}

func TestBar_nilShowsNothing(t *testing.T) {
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(9), callbacks.ProgressBar(nil))
	require.NoError(t, err)
}

// lastLine returns the last line on the screen.
func lastLine(out string) string {
	out = strings.TrimSuffix(out, "\n")
	return out[strings.LastIndexAny(out, "\n\r")+1:]
}

func TestD11_barEndsAtTheTotal(t *testing.T) {
	sleepy := func(_ context.Context, s int, b sized) (int, loop.Logs, error) {
		time.Sleep(time.Second)
		return s + 1, metric("n", float64(len(b))), nil
	}
	data := func(yield func(sized, error) bool) {
		for yield(make(sized, 3), nil) {
		}
	}
	for _, row := range []struct {
		name  string
		until func() loop.Period
		last  string
		lines int
	}{
		{"steps", func() loop.Period { return loop.Steps(7) }, "7/7 - 7.0s - n: 3.0000 - 3 examples/s", 7},
		{"samples", func() loop.Period { return loop.Samples(20) }, "20/20 samples - 7.0s - n: 3.0000 - 3 examples/s", 7},
		{"time", func() loop.Period { return loop.Time(5 * time.Second) }, "5.0s/5.0s - 5.0s - n: 3.0000 - 3 examples/s", 5},
		{"date", func() loop.Period { return loop.Date(time.Now().Add(4 * time.Second).UnixNano()) }, "4.0s/4.0s - 4.0s - n: 3.0000 - 3 examples/s", 2},
		{"the data's end", func() loop.Period { return nil }, "9 steps - 9.0s - n: 3.0000 - 3 examples/s", 2},
	} {
		for _, live := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/live=%t", row.name, live), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var out bytes.Buffer
					var options []callbacks.Bar
					if live {
						options = append(options, callbacks.Terminal(func() int { return 200 }))
					}
					source, until := loop.Data[sized](data), row.until()
					settings := []loop.Option{callbacks.ProgressBar(&out, options...)}
					if until == nil {
						source = firstOf(9, source)
					} else {
						settings = append(settings, loop.Until(until)) // the bar comes before it
					}
					_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(sleepy))).Run(t.Context(), 0, source, settings...)
					require.NoError(t, err)
					require.True(t, strings.HasSuffix(out.String(), "\n"))
					got := lastLine(out.String())
					if live {
						got = strings.TrimSuffix(got, "\x1b[K")
						got = regexp.MustCompile(`\[=+\] - `).ReplaceAllString(got, "- ")
						require.Equal(t, 1, strings.Count(out.String(), "\n"), "one line")
					} else {
						require.Equal(t, row.lines, strings.Count(out.String(), "\n"), out.String())
					}
					require.Equal(t, row.last, got)
				})
			})
		}
	}
}

// firstOf is the first n batches.
func firstOf[B any](n int, data loop.Data[B]) loop.Data[B] {
	return func(yield func(B, error) bool) {
		i := 0
		for b, err := range data {
			if i++; i > n || !yield(b, err) {
				return
			}
		}
	}
}

func TestBar_shows(t *testing.T) {
	var logs loop.Logs
	logs.Loss("loss", 1)
	logs.Metric("accuracy", 0.5)
	logs.Metric("tiny", 0.00002)
	logs.Metric("huge", 1e300)
	logs.Metric("nan", math.NaN())
	logs.Metric("inf", math.Inf(-1))
	logs.Stateful("accuracy", 0.25)
	logs.Output("image", []int{1})
	logs.Set("mine", "x", 3)
	logs.Set("mine", "text", word("a"))
	for _, row := range []struct {
		name    string
		options []callbacks.Bar
		want    string
	}{
		{"without settings", nil, "1 step - 0.0s - loss: 1.0000 - metrics.accuracy: 0.5000 - tiny: 2.000e-05 - huge: 1.000e+300 - nan: NaN - inf: -Inf - stateful_metrics.accuracy: 0.2500\n"},
		{"one", []callbacks.Bar{callbacks.Bar{Shows: []loop.Collection{loop.Stateful}}}, "1 step - 0.0s - accuracy: 0.2500\n"},
		{"one's own, with what is no number", []callbacks.Bar{callbacks.Bar{Shows: []loop.Collection{loop.Losses, "mine"}}}, "1 step - 0.0s - loss: 1.0000 - x: 3.0000 - text: ?\n"},
		{"none", []callbacks.Bar{callbacks.Bar{Shows: []loop.Collection{}}}, "1 step - 0.0s\n"},
		{"off", []callbacks.Bar{callbacks.Bar{Off: true}}, ""},
		{"not off", []callbacks.Bar{callbacks.Bar{Off: false}, callbacks.Bar{Shows: []loop.Collection{}}}, "1 step - 0.0s\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out bytes.Buffer
			bar := callbacks.NewBar(&out, row.options...)
			require.NoError(t, bar.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: 1}, Logs: logs}))
			require.Equal(t, row.want, out.String())
		})
	}
}

// word is a value that is no number.
type word string

func (w word) Float() (float64, error) { return 0, fmt.Errorf("%q is a text", string(w)) }
func (w word) Any() (any, error)       { return string(w), nil }

// A bar that is not off must be the same by hand, called after each step, as the one of a run, which is asked when a
// line is due.
func TestBar_byHandIsThatOfARun(t *testing.T) {
	run := func(t *testing.T, options ...callbacks.Bar) string {
		var out bytes.Buffer
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(slowAdd))).Run(t.Context(), 0, numbers(100), loop.Until(loop.Steps(100)), callbacks.ProgressBar(&out, options...))
		require.NoError(t, err)
		return out.String()
	}
	byHand := func(t *testing.T, options ...callbacks.Bar) string {
		var out bytes.Buffer
		bar, err := callbacks.ProgressBar(&out, options...).Start(loop.Beginning{})
		require.NoError(t, err)
		sum, report, start := 0, loop.Report{}, time.Now()
		for pass, err := range loop.Over(numbers(100), loop.Until(loop.Steps(100))) {
			require.NoError(t, err)
			var logs loop.Logs
			sum, logs, err = slowAdd(t.Context(), sum, pass.Batch)
			require.NoError(t, err)
			report = pass.Report(logs, nil)
			report.Elapsed.Time = time.Since(start) // a pass has the time at which it began
			require.NoError(t, bar.Watch(t.Context(), report))
		}
		require.NoError(t, bar.End(t.Context(), loop.Ending{Report: report}))
		return out.String()
	}
	for _, options := range [][]callbacks.Bar{nil, {callbacks.Terminal(func() int { return 90 })}} {
		synctest.Test(t, func(t *testing.T) { require.Equal(t, run(t, options...), byHand(t, options...)) })
	}
}

// By hand too, a bar that is off or has no writer shows nothing.
func TestBar_byHandShowsNothing(t *testing.T) {
	var out bytes.Buffer
	for _, bar := range []loop.Callback{callbacks.ProgressBar(nil), callbacks.ProgressBar(&out, callbacks.Bar{Off: true})} {
		a, err := bar.Start(loop.Beginning{})
		require.NoError(t, err)
		report := loop.Report{Elapsed: loop.Elapsed{Steps: 1}}
		require.NoError(t, a.Watch(t.Context(), report))
		require.NoError(t, a.End(t.Context(), loop.Ending{Report: report}))
	}
	require.Empty(t, out.String())
}

func slowAdd(ctx context.Context, s, n int) (int, loop.Logs, error) {
	time.Sleep(7 * time.Millisecond)
	return add(ctx, s, n)
}

func TestBar_readsOnlyWhatItWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		step := func(_ context.Context, s, _ int) (int, loop.Logs, error) {
			time.Sleep(time.Millisecond)
			var logs loop.Logs
			logs.Set(loop.Losses, "loss", counted{&reads})
			logs.Set(loop.Outputs, "image", counted{&reads})
			return s, logs, nil
		}
		var out bytes.Buffer
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(1000), loop.Until(loop.Steps(1000)),
			callbacks.ProgressBar(&out, callbacks.Terminal(func() int { return 80 })))
		require.NoError(t, err)
		require.Equal(t, strings.Count(out.String(), "\r"), reads)
		t.Logf("elegy #141: %d reads in 1000 steps of 1 ms", reads)

		reads = 0
		_, err = loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(1000), loop.Until(loop.Steps(1000)),
			callbacks.ProgressBar(&brokenPipe{}, callbacks.Terminal(func() int { return 80 })))
		require.NoError(t, err)
		require.Equal(t, 1, reads, "nobody sees the others")
	})
}

// The bar must not keep steps from being made in blocks.
func TestBar_leavesBlocksTogether(t *testing.T) {
	for _, options := range [][]callbacks.Bar{nil, {callbacks.Terminal(func() int { return 80 })}} {
		synctest.Test(t, func(t *testing.T) {
			b := &blockCounter{}
			_, err := loop.New(loop.On(loop.EachStep, b)).Run(t.Context(), 0, numbers(1024), loop.Until(loop.Steps(1024)), callbacks.ProgressBar(&bytes.Buffer{}, options...))
			require.NoError(t, err)
			require.Equal(t, 1024, b.steps)
			require.Less(t, b.blocks, 150)
			t.Logf("%d steps in %d blocks", b.steps, b.blocks)
		})
	}
}

type blockCounter struct{ steps, blocks int }

func (*blockCounter) BlockSize() int { return 16 }

func (b *blockCounter) Step(context.Context, int, int) (int, loop.Logs, error) {
	return 0, loop.Logs{}, errors.New("not asked for")
}

func (b *blockCounter) StepBlock(_ context.Context, s int, batches []int) (int, []loop.Logs, error) {
	b.steps += len(batches)
	b.blocks++
	time.Sleep(time.Duration(len(batches)) * time.Millisecond)
	return s + len(batches), make([]loop.Logs, len(batches)), nil
}
