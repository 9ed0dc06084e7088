package runs_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/runs"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/safetensors"
)

// counter is a state of plain Go: its weight depends on all batches in their order, and its rate can be changed.
type counter struct {
	Weight, Rate float64
}

func (c *counter) Content(context.Context) (checkpoint.Content, error) {
	return checkpoint.Content{
		Tensors:  []checkpoint.Tensor{{Name: "weight", DType: safetensors.F64, Dims: []int{}, Data: safetensors.Bytes([]float64{c.Weight})}},
		Sections: map[string]any{"rate": checkpoint.Float(c.Rate)},
	}, nil
}

func (c *counter) Restore(_ context.Context, from *checkpoint.Checkpoint) error {
	t, ok := from.Tensor("weight")
	if !ok {
		return errors.New("no weight")
	}
	values, err := safetensors.Values[float64](t.Data)
	if err != nil {
		return err
	}
	var rate checkpoint.Float
	if err := from.Section("rate", &rate); err != nil {
		return err
	}
	c.Weight, c.Rate = values[0], float64(rate)
	return nil
}

func (c *counter) LearningRate() (float64, error)     { return c.Rate, nil }
func (c *counter) SetLearningRate(rate float64) error { c.Rate = rate; return nil }

func (c *counter) step(batch int64) loop.Logs {
	c.Weight = math.Sin(c.Weight*3 + float64(batch)*c.Rate)
	var logs loop.Logs
	logs.Set(loop.Losses, "loss", loop.Number(c.Weight))
	return logs
}

// numbered are batches from a step on.
func numbered(from int64) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for i := from; yield(i, nil); i++ {
		}
	}
}

// counting is a loop of steps in blocks with evaluations.
func counting() loop.Loop[*counter, int64] {
	return loop.New(
		loop.On[*counter, int64](loop.EachStep, blocks{}),
		loop.OnFunc(loop.Every(loop.Steps(7)), func(_ context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
			var logs loop.Logs
			logs.Set(loop.Metrics, "test", loop.Number(math.Cos(c.Weight*5)))
			return c, logs, nil
		}))
}

type blocks struct{}

func (blocks) BlockSize() int { return 10 }

func (b blocks) Step(ctx context.Context, c *counter, batch int64) (*counter, loop.Logs, error) {
	return c, c.step(batch), nil
}

func (b blocks) StepBlock(ctx context.Context, c *counter, batches []int64) (*counter, []loop.Logs, error) {
	var all []loop.Logs
	for _, batch := range batches {
		all = append(all, c.step(batch))
	}
	return c, all, nil
}

// watchers are those with a memory.
func watchers() []loop.Option {
	return []loop.Option{
		callbacks.ReduceOnPlateau("test", loop.Lowest, 0.9, callbacks.Evaluations(2)),
		callbacks.StopEarly("test", loop.Lowest, callbacks.Evaluations(40)),
	}
}

// rows are the history but for the clock.
func rows(t T, h *loop.History) string {
	t.Helper()
	var b strings.Builder
	for at, logs := range h.Rows() {
		fmt.Fprint(&b, at.Steps, " ", at.Samples)
		for e := range logs.All() {
			x, err := e.Value.Float()
			require.NoError(t, err)
			fmt.Fprintf(&b, " %s=%x", e.Path(), math.Float64bits(x))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// resumed runs until the end from what the folder has.
func resumed(t T, f *checkpoint.Folder, until loop.Steps, options ...loop.Option) (loop.Result[*counter], runs.Start) {
	t.Helper()
	state := &counter{Rate: 1}
	start, err := runs.Resume(context.Background(), f, state)
	require.NoError(t, err)
	all := append(watchers(), start.Option(), loop.Until(until), runs.Save(f, loop.Every(loop.Steps(20))))
	result, err := counting().Run(context.Background(), state, loop.Data[int64](numbered(start.Elapsed.Steps)), append(all, options...)...)
	require.NoError(t, err)
	return result, start
}

// Saves come in every place of the options, as do restarts; none changes a bit.
func TestF10_resumeIsTheSameRun(t *testing.T) {
	const steps = 300
	whole, _ := resumed(t, openMem(t, &vfs.Mem{}, checkpoint.Options{}), steps)
	random := rand.New(rand.NewPCG(10, 10))
	for range 20 {
		f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Last(2), checkpoint.Lowest(1, "test")}})
		at := loop.Steps(1 + random.IntN(steps-1))
		first, start := resumed(t, f, at)
		require.False(t, start.Found)
		second, start := resumed(t, f, steps)
		require.True(t, start.Found)
		require.Equal(t, first.Elapsed.Steps, start.Elapsed.Steps, "the last step is saved, whatever the schedule")
		require.Equal(t, math.Float64bits(whole.State.Weight), math.Float64bits(second.State.Weight), "stopped at %v", at)
		require.Equal(t, whole.State.Rate, second.State.Rate)
		require.Equal(t, rows(t, whole.History), rows(t, second.History))
		require.GreaterOrEqual(t, second.Elapsed.Time, start.Elapsed.Time)
		require.NoError(t, f.Close())
	}
	require.Less(t, whole.State.Rate, 0.9, "the plateau had its say")
	t.Logf("F10: 20 stops in %d steps, in blocks, with a plateau: 0 differing bits, rates or rows", steps)
}

// A rate that is changed in the very turn that saves is saved, though the watcher stands behind.
func TestSaveLooksLast(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	state := &counter{Rate: 1}
	_, err := counting().Run(t.Context(), state, loop.Data[int64](numbered(0)), runs.Save(f, loop.EachStep), loop.Until(loop.Steps(8)),
		loop.Watch(loop.At(loop.Steps(3)), func(context.Context, loop.Report) error { state.Rate = 0.25; return nil }))
	require.NoError(t, err)
	for step, want := range map[checkpoint.Step]float64{2: 1, 3: 0.25} {
		var c counter
		if _, err := runs.ResumeAt(t.Context(), f, step, &c); !errors.Is(err, checkpoint.ErrNoStep) { // a slow disk has fewer
			require.NoError(t, err)
			require.Equal(t, want, c.Rate)
		}
	}
}

func TestBestIsSavedOffSchedule(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Last(1), checkpoint.Lowest(2, "test")}})
	result, _ := resumed(t, f, 100)
	at, values, err := result.History.Series("test")
	require.NoError(t, err)
	best := map[int64]float64{}
	for range 2 {
		low := -1
		for i := range values {
			if _, taken := best[at[i].Steps]; !taken && (low < 0 || values[i] < values[low]) {
				low = i
			}
		}
		best[at[low].Steps] = values[low]
	}
	for step, value := range best {
		c, err := f.Load(t.Context(), checkpoint.Step(step))
		require.NoError(t, err)
		require.Equal(t, value, c.Metrics["test"])
	}
	require.Len(t, steps(t, f), 3)
	first, err := result.History.Best("test", loop.Lowest)
	require.NoError(t, err)
	c, err := f.Best(t.Context(), checkpoint.Lowest(1, "test"))
	require.NoError(t, err)
	require.EqualValues(t, first.Elapsed.Steps, c.Step)
	_, err = f.Best(t.Context(), checkpoint.Lowest(1, "other"))
	require.ErrorIs(t, err, checkpoint.ErrNone)
	_, err = f.Best(t.Context(), checkpoint.Last(1))
	require.ErrorContains(t, err, "expected Lowest(1, …)")
}

// What ends a run decides what is saved at its end.
func TestEndings(t *testing.T) {
	for _, row := range []struct {
		name string
		task func(cancel func()) error
		want int64 // of the newest checkpoint
	}{
		{"stopped", func(func()) error { return loop.ErrStop }, 10},
		{"cancelled at a border", func(cancel func()) error { cancel(); return nil }, 10},
		{"cancelled inside of a turn", func(cancel func()) error { cancel(); return context.Canceled }, 8},
		{"failed", func(func()) error { return errors.New("no") }, 8},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := loop.New(loop.On[*counter, int64](loop.EachStep, blocks{}),
				loop.OnFunc(loop.At(loop.Steps(10)), func(_ context.Context, c *counter, _ int64) (*counter, loop.Logs, error) {
					return c, loop.Logs{}, row.task(cancel)
				}))
			_, _ = l.Run(ctx, &counter{Rate: 1}, loop.Data[int64](numbered(0)), runs.Save(f, loop.Every(loop.Steps(4))), loop.Until(loop.Steps(50)))
			all := steps(t, f)
			require.EqualValues(t, row.want, all[len(all)-1])
		})
	}
}

// A save that fails ends the run, or does not.
func TestF05_aRunWhoseSavesFail(t *testing.T) {
	for tolerate, want := range []error{syscall.ENOSPC, nil} {
		full := vfs.Fail(&vfs.Mem{}, vfs.Rule{Op: vfs.OpWrite, N: 1, Err: syscall.ENOSPC})
		f := openMem(t, full, checkpoint.Options{})
		_, err := counting().Run(t.Context(), &counter{Rate: 1}, loop.Data[int64](numbered(0)), loop.Until(loop.Steps(60)),
			runs.Save(f, loop.Every(loop.Steps(10)), runs.Tolerate(tolerate)))
		require.ErrorIs(t, err, want)
		if want == nil {
			all := steps(t, f)
			require.EqualValues(t, 60, all[len(all)-1])
		}
	}
	// The last save is not among those that may fail.
	full := vfs.Fail(&vfs.Mem{}, vfs.Rule{Op: vfs.OpWrite, N: 1, On: true, Err: syscall.ENOSPC})
	_, err := counting().Run(t.Context(), &counter{Rate: 1}, loop.Data[int64](numbered(0)), loop.Until(loop.Steps(60)),
		runs.Save(openMem(t, full, checkpoint.Options{}), loop.Never, runs.Tolerate(5)))
	require.ErrorIs(t, err, syscall.ENOSPC)
	t.Log("F05: ENOSPC in a run: an error.Is of the run, or tolerated, with the last step saved")
}

func TestRefusals(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Lowest(1, "accuracy")}})
	run := func(options ...loop.Option) error {
		_, err := counting().Run(t.Context(), &counter{Rate: 1}, loop.Data[int64](numbered(0)), append(options, loop.Until(loop.Steps(30)))...)
		return err
	}
	require.ErrorContains(t, run(runs.Save(nil, loop.EachStep)), "(each step: save): no folder given")
	_, err := runs.Resume(t.Context(), nil, &counter{})
	require.EqualError(t, err, "checkpoint: resume: no folder given")
	_, err = runs.ResumeAt(t.Context(), nil, 3, &counter{})
	require.EqualError(t, err, "checkpoint: resume from step 3: no folder given")
	require.ErrorContains(t, run(runs.Save(f, loop.EachStep)), `accuracy`, "no entry has that name")

	g := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	require.NoError(t, run(runs.Save(g, loop.Never)))
	require.EqualValues(t, []checkpoint.Step{30}, steps(t, g))
	err = run(runs.Save(g, loop.Every(loop.Steps(10))))
	require.ErrorIs(t, err, runs.ErrNewerSteps)
	require.ErrorContains(t, err, "30, and the run begins with 0: go on from there with Resume, or take another folder")
	h := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	require.ErrorContains(t, run(runs.Save(h, loop.AtStart), runs.Save(h, loop.AtStart)), "another run saves into this folder")

	_, err = loop.New(loop.OnFunc(loop.EachStep, func(_ context.Context, s int, _ int64) (int, loop.Logs, error) { return s, loop.Logs{}, nil })).
		Run(t.Context(), 0, loop.Data[int64](numbered(0)), runs.Save(openMem(t, &vfs.Mem{}, checkpoint.Options{}), loop.EachStep), loop.Until(loop.Steps(3)))
	require.ErrorContains(t, err, "a state of type int cannot be saved: give it the method Content of checkpoint.State")

	for _, section := range []string{"loop", "rate"} {
		err = run(runs.Save(openMem(t, &vfs.Mem{}, checkpoint.Options{}), loop.EachStep, runs.Also(section, func() (any, error) { return 1, nil })))
		require.ErrorContains(t, err, fmt.Sprintf("there is a section %q already", section))
	}
}
