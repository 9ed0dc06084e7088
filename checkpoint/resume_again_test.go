package checkpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// mark is a run to step 40, or a second one of 15 steps from a step, that saves each tenth step. Its weight identifies
// the run.
func mark(t T, f *checkpoint.Folder, number float64, from checkpoint.Step, options ...loop.Option) error {
	t.Helper()
	until := loop.Steps(40)
	if number > 1 {
		until = loop.Steps(from) + 15
	}
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, c *counter, _ int64) (*counter, loop.Logs, error) {
		c.Weight = number
		return c, loop.Logs{}, nil
	})))
	resume := checkpoint.Every(loop.Steps(10))
	if from > 0 {
		resume.At = &from
	}
	_, _, err := run(context.Background(), l, &counter{Rate: 1}, append(options, loop.Until(until), f.Resume(resume))...)
	return err
}

// A full disk does not harm the other run: its newer steps are removed when the new one is durable.
func TestR09_aFailedSaveRemovesNothing(t *testing.T) {
	m := &vfs.Mem{}
	f := openMem(t, m, checkpoint.Options{})
	require.NoError(t, mark(t, f, 1, 0))
	before := steps(t, f)
	require.NoError(t, f.Close())
	f = openMem(t, vfs.Fail(m, vfs.Rule{Op: vfs.OpSync, N: 1, On: true, Err: errors.New("full")}), checkpoint.Options{Overwrite: true})
	require.ErrorContains(t, mark(t, f, 2, before[0]), "full")
	require.Equal(t, before, steps(t, f))
}

// stopping is a run that a watcher stops at a step, or a rule, with rows of its values in the history.
func stopping(t T, f *checkpoint.Folder, until loop.Steps, options ...loop.Option) (loop.Result[*counter], int) {
	t.Helper()
	made := 0
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
		made++
		var logs loop.Logs
		logs.Set(loop.Losses, "loss", max(20-float64(batch), 1))
		return c, logs, nil
	})))
	result, _, err := run(context.Background(), l, &counter{Rate: 1}, append(options, loop.Until(until), f.Resume(checkpoint.Every(loop.Steps(5))))...)
	require.NoError(t, err)
	return result, made
}

// A run that was stopped and is started again makes no step and reports the reason, any number of times, unless the
// reason or the goal differs.
func TestR18_aRunThatHadEndedStaysEnded(t *testing.T) {
	early := func(n int) loop.Option { return callbacks.StopEarly("loss", callbacks.Evaluations(n)) }
	wish := loop.Watch(loop.At(loop.Steps(25)), func(context.Context, loop.Report) error {
		return fmt.Errorf("good enough: %w", loop.ErrStop)
	})
	for _, row := range []struct {
		name    string
		stop    loop.Option
		other   loop.Option // of the resumed run
		by      string
		further bool // continues if another end is requested
	}{
		{"by the rule", early(5), early(8), "on each loss: stop early: no value of loss below 1 (of step 20) for 5 evaluations: stop", false},
		{"by a wish, in a turn that is saved", wish, nil, "at 25 steps: good enough: stop", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
			result, made := stopping(t, f, 100, row.stop)
			require.Equal(t, loop.Stopped, result.Reason)
			require.Equal(t, 25, made)
			for range 2 {
				result, made := stopping(t, f, 100, row.stop)
				require.Zero(t, made, "no step")
				require.Equal(t, loop.Stopped, result.Reason)
				require.ErrorIs(t, result.Stop, loop.ErrStop)
				require.ErrorContains(t, result.Stop, "step 25: ")
				require.ErrorContains(t, result.Stop, row.by)
				require.EqualValues(t, 25, result.Elapsed.Steps)
			}
			if row.other != nil {
				_, made := stopping(t, f, 100, row.other)
				require.Equal(t, 3, made, "with more patience it goes on")
			}
			_, made = stopping(t, f, 120, row.stop)
			require.Equal(t, row.further, made > 0, "another end")
		})
	}
	t.Run("to pause", func(t *testing.T) {
		f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
		stopping(t, f, 100, loop.Watch(loop.At(loop.Steps(25)), func(context.Context, loop.Report) error { return loop.ErrPause }))
		result, made := stopping(t, f, 30)
		require.Equal(t, 5, made)
		require.Equal(t, loop.UntilReached, result.Reason)
	})
	t.Run("the program decides", func(t *testing.T) {
		f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
		stopping(t, f, 100, wish)
		result, _, err := run(t.Context(), counting(), &counter{}, f.Resume(checkpoint.Options{IgnoreEnd: true}), loop.Until(loop.Steps(100)))
		require.NoError(t, err)
		require.EqualValues(t, 100, result.Elapsed.Steps)
	})
}

// configured is a state whose data is known after the first step alone.
type configured struct {
	valued
	rate, clip, batch string
	stepped           bool
}

func (c *configured) Settings() []checkpoint.Setting {
	all := []checkpoint.Setting{{Name: "optimizer.rate", Value: c.rate, Saved: true}, {Name: "optimizer.clip", Value: c.clip}}
	if c.stepped {
		all = append(all, checkpoint.Setting{Name: "batch", Value: c.batch})
	}
	return all
}

// A checkpoint of a resumed run has the settings in force: a third run differs from these, not from those of the second
// program. A setting that the run changes is saved as changed.
func TestR13_settingsInForceAreSaved(t *testing.T) {
	var become string
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, c *configured, _ int64) (*configured, loop.Logs, error) {
		if c.stepped = true; become != "" {
			c.rate = become
		}
		return c, loop.Logs{}, nil
	})))
	f, until := openMem(t, &vfs.Mem{}, checkpoint.Options{}), int64(0)
	for _, row := range []struct{ rate, clip, become, want string }{
		{"0.05", "1", "", ""},
		{"0.01", "2", "", "[optimizer.clip was 1 and is 2 optimizer.rate was 0.05 and is 0.01; the saved value is used]"},
		{"0.05", "2", "", ""},
		{"0.01", "2", "", "[optimizer.rate was 0.05 and is 0.01; the saved value is used]"},
		{"0.01", "2", "0.2", "[optimizer.rate was 0.05 and is 0.01; the saved value is used]"},
		{"0.2", "2", "", ""},
	} {
		var told []checkpoint.Difference
		tell := checkpoint.Options{Changed: func(d checkpoint.Difference) error { told = append(told, d); return nil }}
		become = row.become
		until += 3
		_, _, err := run(t.Context(), l, &configured{rate: row.rate, clip: row.clip, batch: "32"}, loop.Until(loop.Steps(until)), f.Resume(tell))
		require.NoError(t, err)
		if row.want == "" {
			require.Empty(t, told)
		} else {
			require.Equal(t, row.want, fmt.Sprint(told))
		}
	}
}

// Differences are logged where the run is resumed, and not again where the best state is put back.
func TestR13_aDifferenceIsLoggedOnce(t *testing.T) {
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, c *configured, batch int64) (*configured, loop.Logs, error) {
		var logs loop.Logs
		logs.Set(loop.Metrics, "loss", float64(batch))
		c.stepped = true
		return c, logs, nil
	})))
	m, said := &vfs.Mem{}, bytes.Buffer{}
	for _, row := range []struct {
		rate, clip, batch string
		until             int64
		warnings          int
	}{{"0.003", "1", "32", 4, 0}, {"0.1", "2", "64", 8, 3}} {
		said.Reset()
		f := openMem(t, m, checkpoint.Options{Log: slog.New(slog.NewTextHandler(&said, nil))})
		_, _, err := run(t.Context(), l, &configured{rate: row.rate, clip: row.clip, batch: row.batch}, loop.Until(loop.Steps(row.until)), f.Resume(checkpoint.KeepBest("loss")))
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Equal(t, row.warnings, strings.Count(said.String(), "differs from the saved one"), said.String())
	}
}

// One option serves concurrent runs, each with its own data: a second one on the folder is refused, and the saves of
// the first one continue.
func TestResume_twoRunsAtOnce(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 9, Best: 1, Metric: "loss"}}})
	save := f.Resume(checkpoint.Every(loop.Steps(2)))
	try := func(until loop.Steps, each func(step int64)) error {
		l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
			each(batch + 1)
			return c, c.step(batch), nil
		})))
		_, _, err := run(t.Context(), l, &counter{Rate: 1}, loop.Until(until), save)
		return err
	}
	require.NoError(t, try(6, func(step int64) {
		if step == 3 {
			require.ErrorIs(t, try(6, func(int64) { t.Error("a step of the second run") }), checkpoint.ErrReserved)
		}
	}))
	all := steps(t, f)
	require.EqualValues(t, 6, all[len(all)-1])
	require.NoError(t, try(8, func(step int64) { require.Greater(t, step, int64(6)) }), "the folder is free again")
}

// Saves between two evaluations are no reason for a line of the log each; a metric that no save ever had is, once.
func TestR38_savesBetweenEvaluationsAreNoMistake(t *testing.T) {
	keep := []checkpoint.Retention{{Last: 2, Best: 1, Metric: "test", Mode: loop.Lowest}}
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: keep, Log: log})
	_, _, err := run(t.Context(), counting(), &counter{Rate: 1}, loop.Until(loop.Steps(40)), f.Resume(checkpoint.Every(loop.Steps(2))))
	require.NoError(t, err)
	require.NotContains(t, said.String(), "without the metric")
	said.Reset()
	f = openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: keep, Log: log})
	for step := range checkpoint.Step(4) {
		require.NoError(t, f.Save(t.Context(), step, checkpoint.Content{Tensors: []checkpoint.Tensor{{Name: "w", DType: safetensors.U8, Dims: []int{1}, Data: []byte{1}}}, Metrics: map[string]float64{"tset": 1}}))
	}
	require.Equal(t, 1, strings.Count(said.String(), "without the metric"), said.String())
}
