package runs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/runs"
	"github.com/lazo-ml/lazo/checkpoint/storetest"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/safetensors"
)

// mark goes on from a step, 0 for the beginning, to step 40 and in a second run 15 steps far, saves each tenth step,
// and has the weight say which run it is.
func mark(t T, f *checkpoint.Folder, run float64, from checkpoint.Step, options ...loop.Option) error {
	t.Helper()
	state := &counter{Weight: run, Rate: 1}
	start := runs.Start{}
	if from > 0 {
		var err error
		start, err = runs.ResumeAt(context.Background(), f, from, state)
		require.NoError(t, err)
		state.Weight = run
	}
	until := loop.Steps(40)
	if run > 1 {
		until = loop.Steps(from) + 15
	}
	l := loop.New(loop.OnFunc(loop.EachStep, func(_ context.Context, c *counter, _ int64) (*counter, loop.Logs, error) {
		return c, loop.Logs{}, nil
	}))
	_, err := l.Run(context.Background(), state, loop.Data[int64](numbered(start.Elapsed.Steps)),
		append(options, start.Option(), loop.Until(until), runs.Save(f, loop.Every(loop.Steps(10))))...)
	return err
}

// runOf is whose run a checkpoint is.
func runOf(t T, c *checkpoint.Checkpoint) float64 {
	t.Helper()
	var state counter
	require.NoError(t, state.Restore(context.Background(), c))
	return state.Weight
}

// A run that goes on from an earlier step than the newest says so before its first step; with Overwrite what is newer
// gives way to its first checkpoint, in each state that a loss of power, or of the store, may leave.
func TestR09_newestIsNeverAnotherRuns(t *testing.T) {
	ctx := t.Context()
	old := func(t *testing.T) *vfs.Mem {
		m := &vfs.Mem{}
		f := openMem(t, m, checkpoint.Options{})
		require.NoError(t, mark(t, f, 1, 0))
		for _, step := range []checkpoint.Step{10, 20, 30, 40} { // a slow disk may have left one out
			if err := f.Verify(ctx, step); errors.Is(err, checkpoint.ErrNoStep) {
				c, err := f.Load(ctx, 40)
				require.NoError(t, err)
				content := c.Content()
				content.Sections["loop"] = map[string]any{"steps": step, "samples": step, "time": 1, "date": 1}
				require.NoError(t, f.Save(ctx, step, content))
			}
		}
		require.NoError(t, f.Close())
		return m
	}
	states := 0
	for _, from := range []checkpoint.Step{0, 20} {
		made := 0
		f := openMem(t, old(t), checkpoint.Options{})
		err := mark(t, f, 2, from, loop.Watch(loop.EachStep, func(context.Context, loop.Report) error { made++; return nil }))
		require.ErrorIs(t, err, runs.ErrNewerSteps)
		require.ErrorContains(t, err, fmt.Sprintf("40, and the run begins with %d: go on from there with Resume, or take another folder; with Overwrite its first save removes them", from))
		require.Zero(t, made, "before the first step")

		m := old(t)
		looks := func(crashed *vfs.Mem) { // an invariant of each moment
			states++
			g := openMem(t, crashed, checkpoint.Options{})
			list, err := g.List(ctx)
			require.NoError(t, err)
			saved := false
			for _, i := range list {
				c, err := g.Load(ctx, i.Step)
				require.NoError(t, err)
				saved = saved || runOf(t, c) == 2
			}
			newest, err := g.Newest(ctx)
			if from == 0 && errors.Is(err, checkpoint.ErrNone) {
				return // nothing was saved, and nothing of another run is there
			}
			require.NoError(t, err)
			if saved {
				require.EqualValues(t, 2, runOf(t, newest))
			} else {
				require.GreaterOrEqual(t, newest.Step, from)
			}
		}
		random := rand.New(rand.NewPCG(9, 9))
		f = openMem(t, vfs.Hook(m, func(c vfs.Call) error {
			if c.Op.Changes() && c.Op != vfs.OpWrite {
				looks(m.Crash(0, nil))
				looks(m.Crash(1, nil))
				looks(m.Crash(0.5, random))
			}
			return nil
		}), checkpoint.Options{Overwrite: true, ReadBack: checkpoint.ReadBackNone})
		require.NoError(t, mark(t, f, 2, from))
		looks(m.Crash(0, nil))
		c, err := f.Newest(ctx)
		require.NoError(t, err)
		require.EqualValues(t, from+15, c.Step)
		require.EqualValues(t, 2, runOf(t, c))
		require.NoError(t, f.Close())
	}

	store := &storetest.Memory{}
	for run := 1.0; run <= 2; run++ {
		f := openStore(t, store, checkpoint.Options{Overwrite: true})
		require.NoError(t, mark(t, f, run, 0))
		list, err := f.List(ctx)
		require.NoError(t, err)
		for _, i := range list {
			c, err := f.Load(ctx, i.Step)
			require.NoError(t, err)
			require.Equal(t, run, runOf(t, c))
		}
	}
	t.Logf("R09: %d states of a folder that a run goes on in from an earlier step: the newest is another run's in 0 of those in which it has saved", states)
}

// A full disk costs the other run nothing: what is newer goes when the new one is durable.
func TestR09_aFailedSaveRemovesNothing(t *testing.T) {
	m := &vfs.Mem{}
	f := openMem(t, m, checkpoint.Options{})
	require.NoError(t, mark(t, f, 1, 0))
	before := steps(t, f)
	require.NoError(t, f.Close())
	f = openMem(t, vfs.Fail(m, vfs.Rule{Op: vfs.OpSync, N: 1, On: true, Err: errors.New("full")}), checkpoint.Options{Overwrite: true})
	require.ErrorContains(t, mark(t, f, 2, 0), "full")
	require.Equal(t, before, steps(t, f))
}

// stopping is a run that a watcher stops at a step, or a rule, with rows of its values in the history.
func stopping(t T, f *checkpoint.Folder, until loop.Steps, options ...loop.Option) (loop.Result[*counter], runs.Start, int) {
	t.Helper()
	state, made := &counter{Rate: 1}, 0
	start, err := runs.Resume(context.Background(), f, state)
	require.NoError(t, err)
	l := loop.New(loop.OnFunc(loop.EachStep, func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
		made++
		var logs loop.Logs
		logs.Set(loop.Losses, "loss", loop.Number(max(20-float64(batch), 1)))
		return c, logs, nil
	}))
	result, err := l.Run(context.Background(), state, loop.Data[int64](numbered(start.Elapsed.Steps)),
		append(options, start.Option(), loop.Until(until), runs.Save(f, loop.Every(loop.Steps(5))))...)
	require.NoError(t, err)
	return result, start, made
}

// A run that was stopped and is started again makes no step, and says why, as often as one likes. What stopped it has
// to be another, or what was asked for.
func TestR18_aRunThatHadEndedStaysEnded(t *testing.T) {
	early := func(n int) loop.Option { return callbacks.StopEarly("loss", loop.Lowest, callbacks.Evaluations(n)) }
	wish := loop.Watch(loop.At(loop.Steps(25)), func(context.Context, loop.Report) error {
		return fmt.Errorf("good enough: %w", loop.ErrStop)
	})
	for _, row := range []struct {
		name    string
		stop    loop.Option
		other   loop.Option // of the run that goes on
		by      string
		further bool // goes on if another end is asked for
	}{
		{"by the rule", early(5), early(8), "on each loss: stop early: no value of loss below 1 (of step 20) for 5 evaluations: stop", false},
		{"by a wish, in a turn that is saved", wish, nil, "at 25 steps: good enough: stop", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
			result, _, made := stopping(t, f, 100, row.stop)
			require.Equal(t, loop.Stopped, result.Reason)
			require.Equal(t, 25, made)
			for range 2 {
				result, start, made := stopping(t, f, 100, row.stop)
				require.Zero(t, made, "no step")
				require.Equal(t, loop.Stopped, result.Reason)
				require.ErrorIs(t, result.Stop, loop.ErrStop)
				require.ErrorContains(t, result.Stop, "step 25: "+row.by)
				require.EqualValues(t, 25, result.Elapsed.Steps)
				require.NotNil(t, start.Ended)
				require.EqualValues(t, 25, start.Ended.Step)
				require.Equal(t, "100 steps", start.Ended.Until)
				require.Contains(t, start.Ended.By, row.by)
			}
			if row.other != nil {
				_, _, made := stopping(t, f, 100, row.other)
				require.Equal(t, 3, made, "with more patience it goes on")
			}
			_, _, made = stopping(t, f, 120, row.stop)
			require.Equal(t, row.further, made > 0, "another end")
		})
	}
	t.Run("to pause", func(t *testing.T) {
		f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
		stopping(t, f, 100, loop.Watch(loop.At(loop.Steps(25)), func(context.Context, loop.Report) error { return loop.ErrPause }))
		result, start, made := stopping(t, f, 30)
		require.Nil(t, start.Ended)
		require.Equal(t, 5, made)
		require.Equal(t, loop.UntilReached, result.Reason)
	})
	t.Run("the program decides", func(t *testing.T) {
		f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
		stopping(t, f, 100, wish)
		start, err := runs.Resume(t.Context(), f, &counter{})
		require.NoError(t, err)
		start.Ended = nil
		result, err := counting().Run(t.Context(), &counter{}, loop.Data[int64](numbered(25)), start.Option(), loop.Until(loop.Steps(100)))
		require.NoError(t, err)
		require.EqualValues(t, 100, result.Elapsed.Steps)
	})
}

// configured is a state whose data is known behind the first step alone.
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

// What the program sets otherwise than the run that was saved is told, with what is in force: before the run, or behind
// its first step.
func TestR13_changedSettingsAreTold(t *testing.T) {
	l := loop.New(loop.OnFunc(loop.EachStep, func(_ context.Context, c *configured, _ int64) (*configured, loop.Logs, error) {
		c.stepped = true
		return c, loop.Logs{}, nil
	}))
	m := &vfs.Mem{}
	f := openMem(t, m, checkpoint.Options{})
	_, err := l.Run(t.Context(), &configured{rate: "0.003", clip: "1", batch: "32"}, loop.Data[int64](numbered(0)), loop.Until(loop.Steps(4)), runs.Save(f, loop.Never))
	require.NoError(t, err)
	require.NoError(t, f.Close())

	var said bytes.Buffer
	f = openMem(t, m, checkpoint.Options{Log: slog.New(slog.NewTextHandler(&said, nil))})
	state := &configured{rate: "0.1", clip: "2", batch: "64"}
	start, err := runs.Resume(t.Context(), f, state)
	require.NoError(t, err)
	require.Equal(t, []runs.Difference{{What: "optimizer.clip", Saved: "1", Now: "2"}, {What: "optimizer.rate", Saved: "0.003", Now: "0.1", Kept: true}}, start.Differences)
	var told []string
	at := int64(0)
	tell := func(c runs.Difference) error { told = append(told, c.String()); return nil }
	_, err = l.Run(t.Context(), state, loop.Data[int64](numbered(4)), start.Option(tell), loop.Until(loop.Steps(9)),
		loop.Watch(loop.EachStep, func(_ context.Context, r loop.Report) error {
			if at == 0 && len(told) > 0 {
				at = r.Elapsed.Steps
			}
			return nil
		}))
	require.NoError(t, err)
	require.Equal(t, []string{"optimizer.clip was 1 and is 2", "optimizer.rate was 0.003 and is 0.1; what was saved goes on", "batch was 32 and is 64"}, told)
	require.EqualValues(t, 5, at)
	require.Equal(t, 3, strings.Count(said.String(), "level=WARN"), said.String())
	require.Regexp(t, `what=optimizer.rate saved=0.003 now=0.1 in_force=saved\n`, said.String())
	require.Regexp(t, `what=batch saved=32 now=64 in_force=now\n`, said.String())

	refused := errors.New("no")
	_, err = l.Run(t.Context(), state, loop.Data[int64](numbered(4)), start.Option(func(runs.Difference) error { return refused }), loop.Until(loop.Steps(9)))
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, "loop: step 4: ", "before the first step")
}

// Nothing is printed unless a log is given; what has to be known stands in the Start.
func TestR26_aFolderIsSilent(t *testing.T) {
	stderr, def := os.Stderr, slog.Default()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	os.Stderr = w
	slog.SetDefault(slog.New(slog.NewTextHandler(w, nil)))
	defer func() { os.Stderr = stderr; slog.SetDefault(def) }()
	m := &vfs.Mem{}
	for _, until := range []loop.Steps{10, 20} {
		f, err := checkpoint.OpenFS(m, "folder", checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Lowest(2, "test")}})
		require.NoError(t, err)
		resumed(t, f, until)
		require.NoError(t, f.Close())
	}
	text := read(t, m, dir(20)+"/state.safetensors")
	text[len(text)-1]++
	write(t, m, dir(20)+"/state.safetensors", text)
	f, err := checkpoint.OpenFS(m, "folder", checkpoint.Options{})
	require.NoError(t, err)
	start, err := runs.Resume(t.Context(), f, &counter{})
	require.NoError(t, err)
	require.Less(t, start.Elapsed.Steps, int64(20))
	require.Len(t, start.PassedOver, 1, "which is told all the same")
	var damaged *checkpoint.DamagedError
	require.ErrorAs(t, start.PassedOver[0], &damaged)
	require.NoError(t, w.Close())
	var said bytes.Buffer
	_, err = said.ReadFrom(r)
	require.NoError(t, err)
	require.Empty(t, said.String())
}

// Saves between two evaluations are no reason for a line of the log each; a metric that no save ever had is, once.
func TestR38_savesBetweenEvaluationsAreNoMistake(t *testing.T) {
	keep := []checkpoint.Retention{checkpoint.Last(2), checkpoint.Lowest(1, "test")}
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: keep, Log: log})
	_, err := counting().Run(t.Context(), &counter{Rate: 1}, loop.Data[int64](numbered(0)), loop.Until(loop.Steps(40)), runs.Save(f, loop.Every(loop.Steps(2))))
	require.NoError(t, err)
	require.NotContains(t, said.String(), "without the metric")
	said.Reset()
	f = openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: keep, Log: log})
	for step := range checkpoint.Step(4) {
		require.NoError(t, f.Save(t.Context(), step, checkpoint.Content{Tensors: []checkpoint.Tensor{{Name: "w", DType: safetensors.U8, Dims: []int{1}, Data: []byte{1}}}, Metrics: map[string]float64{"tset": 1}}))
	}
	require.Equal(t, 1, strings.Count(said.String(), "without the metric"), said.String())
}

// One option serves runs at once, each with what is its own: a second one on the folder is refused, and the first one's
// saves go on.
func TestSave_ofTwoRunsAtOnce(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Last(9), checkpoint.Lowest(1, "loss")}})
	save := runs.Save(f, loop.Every(loop.Steps(2)))
	run := func(each func(step int64)) error {
		l := loop.New(loop.OnFunc(loop.EachStep, func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
			each(batch + 1)
			return c, c.step(batch), nil
		}))
		_, err := l.Run(t.Context(), &counter{Rate: 1}, loop.Data[int64](numbered(0)), loop.Until(loop.Steps(6)), save)
		return err
	}
	require.NoError(t, run(func(step int64) {
		if step == 3 {
			require.ErrorIs(t, run(func(int64) { t.Error("a step of the second run") }), checkpoint.ErrReserved)
		}
	}))
	all := steps(t, f)
	require.EqualValues(t, 6, all[len(all)-1])
	require.ErrorIs(t, run(func(int64) {}), runs.ErrNewerSteps, "the folder is free again")
}
