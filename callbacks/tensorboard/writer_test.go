package tensorboard_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/data/files"
	"github.com/lazo-ml/lazo/loop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func numbers(n int) loop.Data[int] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
	}
}

// curve logs 1/step as a loss.
func curve(_ context.Context, s, _ int) (int, loop.Logs, error) {
	s++
	var logs loop.Logs
	logs.Loss("loss", 1/float64(s))
	return s, logs, nil
}

// training is a loop with an evaluation "val" at the start and every 5 steps.
func training() loop.Loop[int, int] {
	val := loop.Evaluation[int, int]{Name: "val", Loop: loop.New(loop.On(loop.EachStep, loop.StepFunc(curve))),
		Data: numbers(1)}
	return loop.New(loop.On(loop.EachStep, loop.StepFunc(curve)), val.On(loop.Every(loop.Steps(5)).AndAtStart()))
}

// visible returns the steps of a scalar that TensorBoard's loader keeps.
func visible(all []events, tag string) (steps []int64) {
	for _, p := range kept(all) {
		if p.tag == tag {
			steps = append(steps, p.step)
		}
	}
	return steps
}

// However often a run is killed and resumed from a step before, no step is there twice and none is missing.
func TestWrite_resumedLaw(t *testing.T) {
	parent := t.TempDir()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		dir := filepath.Join(parent, fmt.Sprint(runs))
		at := loop.Elapsed{}
		var reached int64
		for range rapid.IntRange(1, 4).Draw(rt, "runs") {
			n := rapid.IntRange(1, 20).Draw(rt, "steps")
			result, err := training().Run(t.Context(), int(at.Steps), loop.From(func(int64) iter.Seq2[int, error] { return numbers(n).From(0) }), loop.Continue(at, nil),
				tensorboard.Write(dir, loop.EachStep.AndAtStart(), tensorboard.InBackground(callbacks.Background{Queue: 1000})))
			require.NoError(rt, err)
			reached = result.Elapsed.Steps
			at = loop.Elapsed{Steps: rapid.Int64Range(0, reached).Draw(rt, "saved")}
		}
		var want, evaluated []int64
		for s := range reached + 1 {
			if s > 0 {
				want = append(want, s)
			}
			if s%5 == 0 {
				evaluated = append(evaluated, s)
			}
		}
		require.Equal(rt, want, visible(read(t, filepath.Join(dir, "train")), "losses/loss"))
		require.Equal(rt, evaluated, visible(read(t, filepath.Join(dir, "val")), "losses/loss"))
	})
}

// A process that is killed leaves a file cut anywhere: all whole records are read.
func TestWrite_cutAnywhere(t *testing.T) {
	dir := t.TempDir()
	_, err := training().Run(t.Context(), 0, numbers(4), tensorboard.Write(dir, loop.EachStep))
	require.NoError(t, err)
	paths, err := filepath.Glob(filepath.Join(dir, "train", "*"))
	require.NoError(t, err)
	whole, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	for cut := range len(whole) {
		n := 0
		next, stop := iter.Pull2(files.ReadTFRecords(newReader(whole[:cut]), 0))
		for _, err, ok := next(); ok && err == nil; _, err, ok = next() {
			n++
		}
		stop()
		require.Equal(t, wholeRecords(whole[:cut]), n)
	}
	t.Logf("a file of %d bytes and %d records, cut at each byte", len(whole), wholeRecords(whole))
}

type late struct {
	fetched *int
	err     error
}

func (l late) Float() (float64, error) {
	*l.fetched++
	return 1, l.err
}

// Only what is due is read: a value that is not stays on its device.
func TestWrite_readsOnlyWhatIsDue(t *testing.T) {
	fetched := 0
	step := func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Set(loop.Losses, "loss", late{&fetched, nil})
		return s, logs, nil
	}
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(1000), tensorboard.Write(t.TempDir(), loop.Every(loop.Steps(100))))
	require.NoError(t, err)
	require.Equal(t, 10, fetched)
}

func TestNew_byHand(t *testing.T) {
	dir := t.TempDir()
	w := tensorboard.New(dir)
	var logs loop.Logs
	logs.Loss("loss", 2)
	fetched := 0
	logs.Set(loop.Metrics, "lost", late{&fetched, errors.New("device lost")})
	require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: 3}, Logs: logs}))
	for range 2 {
		require.EqualError(t, w.End(t.Context(), loop.Ending{}), "tensorboard: step 3: metrics.lost: device lost")
	}
	require.NoError(t, w.Watch(t.Context(), loop.Report{Logs: logs}), "as if it were not there")
	steps, values := only(t, filepath.Join(dir, "train")).series("losses/loss")
	require.Equal(t, []int64{3}, steps)
	require.Equal(t, []float64{2}, values)

	w = tensorboard.New("")
	require.EqualError(t, w.Watch(t.Context(), loop.Report{}), "tensorboard: want a folder, got no name")
}

// Fit's metrics are stateful, and have the tags that the package's documentation says; two metrics of one name never
// share a tag.
func TestTags_ofStatefulMetrics(t *testing.T) {
	got, err := write(t, func(l *loop.Logs) {
		l.Stateful("accuracy", 0.5)
		l.Stateful("both", 1)
		l.Metric("both", 2)
	})
	require.NoError(t, err)
	require.Equal(t, []string{"metrics/accuracy", "stateful_metrics/both", "metrics/both"}, got.tags())

	w := tensorboard.New(t.TempDir())
	for step, collection := range []loop.Collection{loop.Stateful, loop.Metrics} {
		var logs loop.Logs
		logs.Set(collection, "late", 1)
		require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: int64(step + 1)}, Logs: logs}))
	}
	require.EqualError(t, w.End(t.Context(), loop.Ending{}), "tensorboard: step 2: metrics.late: the tag metrics/late already has the values of "+
		"stateful_metrics.late: log this entry from the first turn on, or under another name")
}
