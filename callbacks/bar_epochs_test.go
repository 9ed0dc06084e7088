package callbacks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// ended is what a bar with epochs of 100 steps, on a terminal or elsewhere, shows of a run of so many steps at its end.
func ended(t *testing.T, live bool, steps int64, e loop.Ending) string {
	var out bytes.Buffer
	options := []callbacks.BarOption{callbacks.BarEpochs(loop.Steps(100))}
	if live {
		options = append(options, callbacks.Terminal(func() int { return 200 }))
	}
	bar := callbacks.NewBar(&out, options...)
	if e.Until == nil && e.Reason == loop.UntilReached {
		e.Until = loop.Steps(300)
	}
	for n := range steps {
		e.Elapsed = loop.Elapsed{Steps: n + 1, Samples: n + 1, Time: time.Duration(n+1) * time.Second}
		require.NoError(t, bar.Watch(t.Context(), e.Report))
	}
	require.NoError(t, bar.End(t.Context(), e))
	lines := strings.Split(out.String(), "\n")
	return strings.TrimPrefix(lines[max(len(lines)-2, 0)], "\r\x1b[J")
}

func TestBarEpochs_sayWhyARunHasEnded(t *testing.T) {
	early := func(best, value float64, options ...callbacks.MonitorOption) error {
		watch, err := callbacks.StopEarly("val_loss", loop.Lowest, callbacks.Evaluations(1), options...).Start(loop.Beginning{})
		require.NoError(t, err)
		var stop error
		for step, v := range []float64{best, value} {
			var logs loop.Logs
			logs.Loss("val_loss", v)
			stop = watch.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: 100 * int64(step+1)}, Logs: logs})
			if stop != nil {
				break
			}
		}
		return fmt.Errorf("loop: step 200: on each val_loss: stop early: %w", stop)
	}
	boom := errors.New("boom")
	for _, row := range []struct {
		steps  int64
		ending loop.Ending
		want   string
	}{
		{300, loop.Ending{Reason: loop.UntilReached}, "finished at epoch 3, in 5m00s"},
		{250, loop.Ending{Report: loop.Report{Until: loop.Steps(250)}, Reason: loop.UntilReached}, "finished in epoch 3, 50/100, in 4m10s"},
		{0, loop.Ending{Reason: loop.UntilReached}, ""},
		{120, loop.Ending{Reason: loop.DataEnded}, "finished in epoch 2, 20/100, in 2m00s"},
		{120, loop.Ending{Report: loop.Report{Until: loop.Steps(300)}}, "the data ended in epoch 2, 20/100"},
		{205, loop.Ending{Reason: loop.Cancelled, Err: context.Canceled}, "interrupted in epoch 3, 5/100"},
		{200, loop.Ending{Reason: loop.Cancelled, Err: context.Canceled}, "interrupted at epoch 2"},
		{0, loop.Ending{Reason: loop.Cancelled, Err: context.Canceled}, "interrupted before the first step"},
		{107, loop.Ending{Reason: loop.Failed, Err: boom}, "failed in epoch 2, 7/100"},
		{0, loop.Ending{Reason: loop.Failed, Err: boom}, "failed before the first step"},
		{200, loop.Ending{Reason: loop.Stopped, Report: loop.Report{Stop: early(0.5, 0.6)}},
			"stopped early at epoch 2: val_loss has not improved for 1 epoch; best 0.5000 at epoch 1"},
		{200, loop.Ending{Reason: loop.Stopped, Report: loop.Report{Stop: early(0.5, 0.4, callbacks.MinDelta(0.2))}},
			"stopped early at epoch 2: val_loss has not improved by more than 0.2 for 1 epoch; best 0.5000 at epoch 1"},
		{100, loop.Ending{Reason: loop.Stopped, Report: loop.Report{Stop: early(0.5, 0.4, callbacks.Baseline(0.1))}},
			"stopped early at epoch 1: no value of val_loss below the baseline 0.1 for 1 evaluation"},
		{130, loop.Ending{Reason: loop.Stopped, Report: loop.Report{Stop: fmt.Errorf("loop: step 130: time limit: enough: %w", loop.ErrStop)}},
			"stopped in epoch 2, 30/100: step 130: time limit: enough: stop"},
	} {
		require.Equal(t, row.want, ended(t, true, row.steps, row.ending))
		if strings.HasPrefix(row.want, "finished") {
			row.want = fmt.Sprintf("epoch %d", (row.steps+99)/100) // and no line of the end
		}
		require.True(t, strings.HasPrefix(ended(t, false, row.steps, row.ending), row.want), "%s: %s", row.want, ended(t, false, row.steps, row.ending))
	}
}

// The epochs of a run that goes on, in each unit.
func TestBarEpochs_units(t *testing.T) {
	for _, row := range []struct {
		epoch, until loop.Period
		from         int64
		want         []string
	}{
		{loop.Steps(2), loop.Steps(5), 0, []string{"epoch 1/3 - 2.0s", "epoch 2/3 - 2.0s", "epoch 3/3 - 1/2 - 1.0s"}},
		{loop.Steps(2), loop.Steps(6), 3, []string{"epoch 2/3 - 1.0s", "epoch 3/3 - 2.0s"}},
		{loop.Samples(5), loop.Samples(12), 0, []string{"epoch 1/3 - 2.0s", "epoch 2/3 - 2.0s"}},
		{loop.Time(3 * time.Second), loop.Steps(4), 0, []string{"epoch 1 - 3.0s", "epoch 2 - 1.0s/3.0s - 1.0s"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			step := func(_ context.Context, s int, _ sized) (int, loop.Logs, error) {
				time.Sleep(time.Second)
				return s, loop.Logs{}, nil
			}
			batches := func(yield func(sized, error) bool) {
				for yield(make(sized, 3), nil) {
				}
			}
			from := loop.Continue(loop.Elapsed{Steps: row.from, Samples: 3 * row.from}, nil)
			_, err := loop.New(loop.OnFunc(loop.EachStep, step)).Run(t.Context(), 0, loop.Data[sized](batches), loop.Until(row.until), from,
				callbacks.ProgressBar(callbacks.NewLines(&out), callbacks.BarEpochs(row.epoch)))
			require.NoError(t, err)
			var got []string
			for line := range strings.Lines(out.String()) {
				line, _, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " - 3.0 examples/s")
				got = append(got, line)
			}
			require.Equal(t, row.want, got)
		})
	}
}

func TestBarEpochs_ofNoLength(t *testing.T) {
	for _, length := range []loop.Period{nil, loop.Steps(0), loop.Date(5)} {
		_, err := loop.New(loop.OnFunc(loop.EachStep, add)).Run(t.Context(), 0, numbers(9), callbacks.ProgressBar(io.Discard, callbacks.BarEpochs(length)))
		require.ErrorContains(t, err, "progress bar): every")
		_, err = callbacks.ProgressBar(io.Discard, callbacks.BarEpochs(length)).Start(loop.Beginning{})
		require.ErrorContains(t, err, "callbacks: progress bar: ")
		err = callbacks.NewBar(io.Discard, callbacks.BarEpochs(length)).Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: 1}})
		require.ErrorContains(t, err, "callbacks: progress bar: every")
	}
}

// Outside a terminal there is a line for each epoch. By hand, the reports can come from anywhere.
func ExampleBarEpochs() {
	bar := callbacks.NewBar(os.Stdout, callbacks.BarEpochs(loop.Steps(10)))
	var report loop.Report
	for step := int64(1); step <= 30; step++ {
		report = loop.Report{Until: loop.Steps(30), Elapsed: loop.Elapsed{Steps: step, Samples: 32 * step, Time: time.Duration(step) * time.Second}}
		report.Logs.Loss("loss", 1/float64(step))
		if err := bar.Watch(context.Background(), report); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(bar.End(context.Background(), loop.Ending{Report: report, Reason: loop.UntilReached}))
	// Output:
	// epoch 1/3 - 10s - loss: 0.1000 - 32 examples/s
	// epoch 2/3 - 10s - loss: 0.0500 - 32 examples/s
	// epoch 3/3 - 10s - loss: 0.0333 - 32 examples/s
	// <nil>
}
