package callbacks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// ended returns the last line of a bar with epochs of 100 steps, on a terminal or not, after a run of some steps. The
// run may count its epochs.
func ended(t *testing.T, live, counted bool, steps int64, e loop.Ending) string {
	var out bytes.Buffer
	options := []callbacks.Bar{callbacks.Bar{Epoch: loop.Steps(100)}}
	if counted {
		options = []callbacks.Bar{callbacks.Bar{Epoch: loop.Epochs(1), EpochSteps: 100}}
	}
	if live {
		options = append(options, callbacks.Terminal(func() int { return 200 }))
	}
	bar := callbacks.NewBar(&out, options...)
	if e.Until == nil && e.Reason == loop.UntilReached {
		e.Until = loop.Steps(300)
	}
	for n := range steps {
		e.Elapsed = loop.Elapsed{Steps: n + 1, Samples: n + 1, Time: time.Duration(n+1) * time.Second}
		if counted {
			e.Elapsed.Epochs = e.Elapsed.Steps / 100
		}
		require.NoError(t, bar.Watch(t.Context(), e.Report))
	}
	require.NoError(t, bar.End(t.Context(), e))
	lines := strings.Split(out.String(), "\n")
	return strings.TrimPrefix(lines[max(len(lines)-2, 0)], "\r\x1b[J")
}

func TestBarEpochs_sayWhyARunHasEnded(t *testing.T) {
	early := func(best, value float64, options ...callbacks.Monitor) error {
		watch, err := callbacks.StopEarly("val_loss", callbacks.Evaluations(1), options...).Start(loop.Beginning{})
		require.NoError(t, err)
		var stop error
		for step, v := range []float64{best, value} {
			var logs loop.Logs
			logs.Loss("val_loss", v)
			stop = watch.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: 100 * int64(step+1), Epochs: int64(step + 1)}, Logs: logs})
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
		{200, loop.Ending{Reason: loop.Stopped, Report: loop.Report{Stop: early(0.5, 0.4, callbacks.Monitor{MinDelta: 0.2})}},
			"stopped early at epoch 2: val_loss has not improved by more than 0.2 for 1 epoch; best 0.5000 at epoch 1"},
		{100, loop.Ending{Reason: loop.Stopped, Report: loop.Report{Stop: early(0.5, 0.4, callbacks.Monitor{Baseline: new(0.1)})}},
			"stopped early at epoch 1: no value of val_loss below the baseline 0.1 for 1 evaluation"},
		{130, loop.Ending{Reason: loop.Stopped, Report: loop.Report{Stop: fmt.Errorf("loop: step 130: time limit: enough: %w", loop.ErrStop)}},
			"stopped in epoch 2, 30/100: step 130: time limit: enough: stop"},
	} {
		plain := row.want
		if strings.HasPrefix(row.want, "finished") {
			plain = fmt.Sprintf("epoch %d", (row.steps+99)/100) // and no line of the end
		}
		for _, counted := range []bool{false, true} {
			require.Equal(t, row.want, ended(t, true, counted, row.steps, row.ending))
			got := ended(t, false, counted, row.steps, row.ending)
			require.True(t, strings.HasPrefix(got, plain), "%s: %s", plain, got)
		}
	}
}

// The epochs of a resumed run, in each unit.
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
			_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, loop.Data[sized](batches), loop.Until(row.until), from,
				callbacks.ProgressBar(&callbacks.Lines{Out: &out}, callbacks.Bar{Epoch: row.epoch}))
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

// Where the run counts its epochs, the bar shows these: their numbers, how much of the present one is done, and the
// time left, also of a run that continues an earlier one with epochs of another length.
func TestBarEpochs_thatTheRunCounts(t *testing.T) {
	history := new(loop.History)
	for i := range int64(3) {
		history.Commit(loop.Elapsed{Steps: 2 * (i + 1), Epochs: i + 1}, loop.Logs{}, 1)
	}
	for _, row := range []struct {
		name    string
		steps   loop.Steps
		until   loop.Period
		history *loop.History
		from    loop.Elapsed
		ends    []int64 // the steps that end an epoch
		want    []string
	}{
		{"from the start", 2, loop.Epochs(2), nil, loop.Elapsed{}, []int64{2, 4},
			[]string{"epoch 1/2 1/2", "epoch 1/2 - 2.0s", "epoch 2/2 1/2 - ETA 1.0s", "epoch 2/2 - 2.0s"}},
		{"until a step", 2, loop.Steps(3), nil, loop.Elapsed{}, []int64{2},
			[]string{"epoch 1/2 1/2", "epoch 1/2 - 2.0s", "epoch 2/2 1/2 - ETA 0.0s", "epoch 2/2 - 1/2 - 1.0s"}},
		{"of unknown length", 0, loop.Epochs(2), nil, loop.Elapsed{}, []int64{2, 4},
			[]string{"epoch 1/2 1 step", "epoch 1/2 - 2.0s", "epoch 2/2 1 step - ETA 2.0s", "epoch 2/2 - 2.0s"}},
		{"longer than before", 3, loop.Epochs(5), history, loop.Elapsed{Steps: 6, Epochs: 3}, []int64{9, 12},
			[]string{"epoch 4/5 1/3", "epoch 4/5 2/3 - ETA 4.0s", "epoch 4/5 - 3.0s", "epoch 5/5 1/3 - ETA 2.0s", "epoch 5/5 2/3 - ETA 1.0s", "epoch 5/5 - 3.0s"}},
		{"inside of an epoch", 3, loop.Epochs(4), history, loop.Elapsed{Steps: 7, Epochs: 3}, []int64{9},
			[]string{"epoch 4/4 2/3", "epoch 4/4 - 2.0s"}},
		{"inside of an epoch, without a history", 3, loop.Epochs(3), nil, loop.Elapsed{Steps: 7, Epochs: 2}, []int64{9},
			[]string{"epoch 3/3 2/3", "epoch 3/3 - 2.0s"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				step := func(_ context.Context, s int, _ ending) (int, loop.Logs, error) {
					time.Sleep(time.Second)
					return s, loop.Logs{}, nil
				}
				batches := loop.From(func(at int64) iter.Seq2[ending, error] {
					return func(yield func(ending, error) bool) {
						for more := true; more; {
							at++
							more = yield(ending(slices.Contains(row.ends, at)), nil)
						}
					}
				})
				_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, batches, loop.Until(row.until), loop.Continue(row.from, row.history),
					callbacks.ProgressBar(&out, callbacks.Terminal(func() int { return 200 }), callbacks.Bar{Epoch: loop.Epochs(1), EpochSteps: row.steps}))
				require.NoError(t, err)
				var got []string
				drawing := regexp.MustCompile(`\x1b\[[?0-9]*[a-zA-Z]| \[[=.]*\]`)
				for line := range strings.SplitSeq(strings.ReplaceAll(out.String(), "\n", "\r"), "\r") {
					line, _, _ = strings.Cut(drawing.ReplaceAllString(line, ""), " - 1.0 steps/s")
					if strings.HasPrefix(line, "epoch") {
						got = append(got, line)
					}
				}
				require.Equal(t, row.want, got, "%q", out.String())
			})
		})
	}
}

// ending is a batch that knows whether it is the last of its epoch.
type ending bool

func (e ending) InEpoch() (epoch int64, last, known bool) { return 0, bool(e), true }

func TestBarEpochs_ofNoLength(t *testing.T) {
	for _, length := range []loop.Period{loop.Steps(0), loop.Date(5)} {
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(9), callbacks.ProgressBar(io.Discard, callbacks.Bar{Epoch: length}))
		require.ErrorContains(t, err, "progress bar): every")
		_, err = callbacks.ProgressBar(io.Discard, callbacks.Bar{Epoch: length}).Start(loop.Beginning{})
		require.ErrorContains(t, err, "callbacks: progress bar: ")
		err = callbacks.NewBar(io.Discard, callbacks.Bar{Epoch: length}).Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: 1}})
		require.ErrorContains(t, err, "callbacks: progress bar: every")
	}
}

// Outside a terminal there is a line for each epoch. By hand, the reports can come from anywhere.
func ExampleBar() {
	bar, err := callbacks.ProgressBar(os.Stdout, callbacks.Bar{Epoch: loop.Steps(10)}).Start(loop.Beginning{})
	if err != nil {
		fmt.Println(err)
		return
	}
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
