package outer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train/outer"
)

func TestB37_intervalsOfActions(t *testing.T) {
	for _, row := range []struct {
		loops int
		want  []int
	}{{1, []int{1, 0, 0}}, {2, []int{2, 1, 0}}, {6, []int{6, 3, 2}}} {
		counts := [2][]int{make([]int, 3), make([]int, 3)}
		actions := func(into []int) (list []action) {
			for i := range into {
				list = append(list, action{Every: outer.InnerLoops(i + 1), Do: func(context.Context, border) error { into[i]++; return nil }})
			}
			return list
		}
		// The data ends the run: with a total, an interval of 3 in 1 inner loop is an error.
		o := toy{Train: counting, Data: dataOf(row.loops*5, nil), TotalSteps: outer.AllData, LoopSteps: 5, Begin: actions(counts[0]), End: actions(counts[1])}
		_, err := o.Run(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, [2][]int{row.want, row.want}, counts)
		t.Logf("after %d inner loops: %v", row.loops, counts)
	}
}

func TestB64_stepNumber(t *testing.T) {
	var written []int64
	o := toy{Train: counting, Data: endless(nil), TotalSteps: 1,
		End: []action{{Do: func(_ context.Context, at border) error { written = append(written, at.Elapsed.Steps); return nil }}}}
	_, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []int64{1}, written)
	t.Logf("%v", written)
}

func TestAction_whatItSees(t *testing.T) {
	var seen []string
	look := func(what string) action {
		return action{Do: func(_ context.Context, at border) error {
			loss, err := at.Outputs().Float("loss")
			if err != nil {
				loss = -1
			}
			_, evaluated := at.Evaluations["test"]
			seen = append(seen, fmt.Sprint(what, " loop ", at.Number, " step ", at.Elapsed.Steps, " samples ", at.Elapsed.Samples, " state ", at.State,
				" steps ", at.Steps, " loss ", loss, " rows ", at.History().Len(), " ", evaluated))
			return nil
		}}
	}
	o := toy{Train: counting, Data: dataOf(6, nil), TotalSteps: outer.AllData, LoopSteps: 4, Begin: []action{look("begin")}, End: []action{look("end")},
		Evals: []eval{{Test: test{Name: "test", Step: counting, Data: evalData(3)}, End: []action{look("test")}}}}
	_, err := o.Run(t.Context(), 0, loop.SamplesBy(func(int) int { return 2 }))
	require.NoError(t, err)
	require.Equal(t, []string{
		"begin loop 1 step 0 samples 0 state 0 steps 0 loss -1 rows 0 false",
		"test loop 1 step 4 samples 8 state 4 steps 3 loss 5 rows 3 true",
		"end loop 1 step 4 samples 8 state 4 steps 4 loss 1.5 rows 4 true",
		"begin loop 2 step 4 samples 8 state 4 steps 0 loss -1 rows 0 true",
		"test loop 2 step 6 samples 12 state 6 steps 3 loss 7 rows 3 true",
		"end loop 2 step 6 samples 12 state 6 steps 2 loss 4.5 rows 2 true",
	}, seen)
}

func TestInner_outputsStayThoseOfTheirLoop(t *testing.T) {
	var all []border
	o := toy{Train: counting, Data: dataOf(6, nil), TotalSteps: outer.AllData, LoopSteps: 2, End: []action{{Do: func(_ context.Context, at border) error {
		all = append(all, at)
		return nil
	}}}, Evals: []eval{{Test: test{Name: "test", Step: counting, Data: evalData(1)}}}}
	_, err := o.Run(t.Context(), 0)
	require.NoError(t, err)
	for i, at := range all {
		logs := at.Outputs()
		require.Equal(t, 2*float64(i)+0.5, number(t, logs, "loss"))
		require.Equal(t, float64(i+1), number(t, logs, "loop_count"))
		require.Equal(t, 2*float64(i)+2, number(t, at.Evaluations["test"].Outputs(), "loss"))
		logs.Set(loop.Losses, "loss", loop.Number(-1)) // touches nobody else's
		require.Equal(t, 2*float64(i)+0.5, number(t, at.Outputs(), "loss"))
	}
}

func TestB40_stats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := loop.StepFunc[int, int](func(ctx context.Context, s, b int) (int, loop.Logs, error) {
			time.Sleep(2 * time.Second)
			return counting(ctx, s, b)
		})
		wait := func(d time.Duration) action {
			return action{Do: func(context.Context, border) error { time.Sleep(d); return nil }}
		}
		var at []border
		o := toy{Train: slow, TotalSteps: 20, LoopSteps: 10,
			Data: func(ctx context.Context, from loop.Elapsed) (loop.Data[int], error) {
				time.Sleep(7 * time.Second)
				return endless(nil)(ctx, from)
			},
			Begin: []action{wait(time.Minute)},
			Evals: []eval{{Test: test{Name: "test", Step: slow, Data: evalData(3)}}},
			End:   []action{wait(time.Hour), {Do: func(_ context.Context, b border) error { at = append(at, b); return nil }}}}
		result, err := o.Run(t.Context(), 0, loop.SamplesBy(func(int) int { return 32 }))
		require.NoError(t, err)
		life := []float64{7 + 60 + 20, 7 + 60 + 20 + 6 + 3600 + 60 + 20}
		for i, b := range at {
			logs := b.Outputs()
			for name, want := range map[string]float64{"steps_per_sec": 0.5, "stats.examples_per_sec": 16, "loop_time_secs": 20, "init_time_secs": 7,
				"life_time_secs": life[i], "loop_count": float64(i + 1)} {
				require.Equal(t, want, number(t, logs, name), name)
				t.Logf("%s %g", name, want)
			}
			require.Equal(t, 6., number(t, b.Evaluations["test"].Outputs(), "loop_time_secs"))
			require.Equal(t, 0.5, number(t, b.Evaluations["test"].Outputs(), "steps_per_sec"))
		}
		// They are no entries of the history, where a bar would show them all the time.
		_, err = result.History.Last("steps_per_sec")
		require.ErrorIs(t, err, loop.ErrNoEntry)
	})
}

func TestB75_background(t *testing.T) {
	boom, bang := errors.New("boom"), errors.New("bang")
	var b outer.Group
	require.NoError(t, b.Wait())
	b.Go("good", func() error { return nil })
	require.NoError(t, b.Wait())
	b.Go("bad", func() error { return boom })
	b.Go("bad too", func() error { panic(bang) })
	err := b.Wait()
	require.ErrorIs(t, err, boom)
	require.ErrorIs(t, err, bang)
	require.ErrorContains(t, err, "background: bad: boom")
	var p *loop.PanicError
	require.ErrorAs(t, err, &p)
	require.NotEmpty(t, p.Stack)
	require.NoError(t, b.Wait(), "the second check is clean")
	require.NoError(t, b.Err())
	t.Logf("%q", err)

	b.Go("gone", func() error { runtime.Goexit(); return nil })
	require.ErrorContains(t, b.Wait(), "background: gone: panic: runtime.Goexit was called")
	b.Go("nothing", nil)
	require.ErrorContains(t, b.Wait(), "background: nothing: no function given")
	b.Go("stops", func() error { return loop.ErrStop })
	b.Go("fails", func() error { return boom })
	err = b.Wait()
	require.ErrorIs(t, err, boom)
	require.NotErrorIs(t, err, loop.ErrStop)
}

func TestBackground_inARun(t *testing.T) {
	boom := errors.New("boom")
	for _, row := range []struct {
		name   string
		err    error
		in     int64         // the inner loop that starts it
		takes  time.Duration // a step takes one second
		state  int
		reason loop.Reason
		want   string
	}{
		{"it is well", nil, 1, time.Hour, 40, loop.UntilReached, ""},
		{"the begin of the next inner loop", boom, 1, time.Millisecond, 10, loop.Failed, "loop: step 11: begin of inner loop: action first: background: save: boom"},
		{"the next end", boom, 1, 5 * time.Second, 20, loop.Failed, "loop: step 20: every 10 steps, at end: inner loops: background: save: boom"},
		{"the end of the run", boom, 4, time.Hour, 40, loop.Failed, "loop: at the end: step 40: at end: background work: background: save: boom"},
		{"it wants to stop", loop.ErrStop, 1, 5 * time.Second, 20, loop.Stopped, ""},
		{"it wants to stop at the end", loop.ErrStop, 4, 5 * time.Second, 40, loop.UntilReached, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done, closed := false, false
				o := toy{TotalSteps: 40, LoopSteps: 10, Data: endless(nil),
					Train: loop.StepFunc[int, int](func(ctx context.Context, s, b int) (int, loop.Logs, error) {
						time.Sleep(time.Second)
						return counting(ctx, s, b)
					}),
					Begin: []action{{Name: "first", Do: func(context.Context, border) error { return nil }}},
					End: []action{{Name: "save", Do: func(_ context.Context, at border) error {
						if at.Number == row.in {
							at.Group.Go("save", func() error {
								time.Sleep(row.takes)
								done = true
								return row.err
							})
							if row.takes < time.Second {
								time.Sleep(time.Second)
							}
						}
						return nil
					}, Close: func(context.Context) error { closed = done; return nil }}}}
				result, err := o.Run(t.Context(), 0)
				if row.want == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, row.want)
					require.ErrorIs(t, err, boom)
				}
				require.Equal(t, row.reason, result.Reason)
				require.Equal(t, row.state, result.State)
				require.True(t, closed, "closed behind the background work")
			})
		})
	}
}
