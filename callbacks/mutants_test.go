package callbacks_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// Behaviours that mutants showed to be untested.

var errRead = errors.New("the device is gone")

// unread is a number that cannot be read.
type unread struct{}

func (unread) Float() (float64, error) { return 0, errRead }

// An entry that cannot be read ends the run in every callback that follows it.
func TestMonitors_ofAnEntryThatCannotBeRead(t *testing.T) {
	for name, option := range map[string]loop.Option{
		"stop early": callbacks.StopEarly("loss", callbacks.Evaluations(3)),
		"keep best":  callbacks.KeepBest("loss"),
		"non-finite": callbacks.NonFinite(),
		"spike":      callbacks.WarnSpike("loss", 10, 2, func(context.Context, callbacks.Spike) error { return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			step := func(_ context.Context, s, n int) (int, loop.Logs, error) {
				var logs loop.Logs
				logs.Set(loop.Losses, "loss", float64(n))
				if n == 3 {
					logs.Set(loop.Losses, "loss", unread{})
				}
				return s + 1, logs, nil
			}
			_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(10), option)
			require.ErrorIs(t, err, errRead)
			require.ErrorContains(t, err, "step 4")
		})
	}
}

// The figures of a bar change their form at ten million, below a thousandth and where they are none.
func TestBar_figures(t *testing.T) {
	for v, want := range map[float64]string{
		9_999_999: "9999999.0000", 1e7: "1.000e+07", -1e7: "-1.000e+07", 1e-3: "0.0010", 0.999e-3: "9.990e-04", 0: "0.0000",
		math.Inf(1): "+Inf", math.Inf(-1): "-Inf",
	} {
		var out bytes.Buffer
		require.NoError(t, callbacks.NewBar(&out).Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: 1}, Logs: metric("v", v)}))
		require.Contains(t, out.String(), "v: "+want+"\n")
	}
}

// Lines above a bar keep io.Writer's contract, with whole lines and with parts of one.
func TestLines_tellHowMuchTheyTook(t *testing.T) {
	var out bytes.Buffer
	lines := &callbacks.Lines{Out: &out}
	bar := callbacks.NewBar(&out, callbacks.Bar{Below: []*callbacks.Lines{lines}}, callbacks.Terminal(func() int { return 60 }))
	require.NoError(t, bar.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: 1}, Logs: metric("v", 1)}))
	for _, text := range []string{"whole\n", "a part", " and its end\nand more"} {
		n, err := io.WriteString(lines, text)
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
}

// A schedule of time that is turned round still has the clock asked.
func TestNot_ofATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []int64
		step := func(_ context.Context, s, n int) (int, loop.Logs, error) {
			time.Sleep(time.Second)
			return s, loop.Logs{}, nil
		}
		count := func(_ context.Context, r loop.Report) error { at = append(at, r.Elapsed.Steps); return nil }
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(6), loop.Watch(loop.Every(seconds(3)).Not(), count))
		require.NoError(t, err)
		require.Equal(t, []int64{1, 2, 4, 5}, at)
	})
}

// An evaluation by hand gives the state back that it was given.
func TestEvaluation_byHandGivesTheState(t *testing.T) {
	test := loop.Evaluation[int, int]{Name: "test", Data: ten, Loop: counting(loop.Metrics)}
	result, logs, err := test.Run(t.Context(), 7)
	require.NoError(t, err)
	require.Equal(t, 7, result.State, "what it changes is for itself")
	require.Positive(t, logs.Len())
}

// The mean of batches without examples is an error and not a number.
func TestHistory_meanOfNoExamples(t *testing.T) {
	h := &loop.History{}
	h.Commit(loop.Elapsed{Steps: 1}, metric("v", 1), 0)
	_, err := h.Mean("v")
	require.ErrorContains(t, err, `mean of "v": the batches had no examples`)
}

// A callback in the background has a context that ends with it.
func TestBackground_itsContextEnds(t *testing.T) {
	var given context.Context
	watch := func(ctx context.Context, _ loop.Report) error { given = ctx; return nil }
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(3), callbacks.Background{}.Of(loop.Watch(loop.EachStep, watch)))
	require.NoError(t, err)
	require.Error(t, given.Err())
}

// A profile leaves no file open.
func TestProfile_leavesNothingOpen(t *testing.T) {
	dir := t.TempDir()
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(20), callbacks.Profile(dir, loop.Steps(2), loop.Steps(3)))
	require.NoError(t, err)
	written, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(written), 3)
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // not on this system
	}
	for _, f := range open {
		at, _ := os.Readlink(filepath.Join("/proc/self/fd", f.Name()))
		require.False(t, strings.HasPrefix(at, dir), at)
	}
}
