package loop_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

// A panic of a source is one type and one line, on whichever goroutine it was.
func TestRun_aPanicOfTheData(t *testing.T) {
	broken := func(yield func(int, error) bool) { yield(1, nil); panic("no luck") }
	for name, row := range map[string]struct {
		data loop.Data[int]
		want string
	}{
		"the source itself": {broken, "panic: no luck"},
		"Prefetch":          {loop.Data[int](data.Prefetch(broken, 2)), "prefetch: the source: panic: no luck"},
		"ParallelMap": {loop.Data[int](data.ParallelMap(numbers(3).From(0), 2, func(int) (int, error) { panic("no luck") })),
			"parallel map: the function: panic: no luck"},
	} {
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, row.data)
		var p *loop.PanicError
		require.ErrorAs(t, err, &p, name)
		require.Equal(t, "no luck", p.Value)
		require.Contains(t, string(p.Stack), "shield_test.go")
		require.Regexp(t, `^loop: step \d: data: `+row.want+"$", err.Error())
	}
}

// spoiled panics in one of its methods.
type spoiled struct{ at, interrupts bool }

func (s spoiled) At(int64, abilities.Activity) {
	if s.at {
		panic("bad")
	}
}

func (s spoiled) Interrupts() bool {
	if s.interrupts {
		panic("bad")
	}
	return false
}
func (spoiled) Watch(context.Context, loop.Report) error { return nil }
func (spoiled) End(context.Context, loop.Ending) error   { return nil }

// spoiledSize panics when it is asked how long its blocks are.
type spoiledSize struct{ loop.Stepper[int, int] }

func (spoiledSize) BlockSize() int { panic("bad") }
func (spoiledSize) StepBlock(context.Context, int, []int) (int, []loop.Logs, error) {
	return 0, nil, nil
}

// No function that the user gives panics out of a run, a plan or an evaluation by hand, and each error has its name.
func TestRun_everyFunctionIsShielded(t *testing.T) {
	step := loop.On(loop.EachStep, loop.StepFunc(add))
	start := func(s spoiled) loop.Option {
		return loop.Callback{Name: "spoiled", When: loop.EachStep, Start: func(loop.Beginning) (loop.Attendant, error) { return s, nil }}
	}
	later := loop.Watch(loop.EachStep, nothing)
	whenRun := func(loop.Beginning) loop.Schedule { panic("bad") }
	for _, row := range []struct {
		name    string
		tasks   []loop.Task[int, int]
		options []loop.Option
		want    string
		plan    bool // finds it too
	}{
		{"Prepare", []loop.Task[int, int]{step}, []loop.Option{loop.Prepare("each", func(context.Context, loop.Beginning) (loop.Option, error) { panic("bad") })},
			"loop: each: panic: bad", false},
		{"WhenRun", []loop.Task[int, int]{step}, []loop.Option{later, loop.Callback{Name: "late", WhenRun: whenRun, Start: nobody}},
			"loop: callback 2 (late): panic: bad", true},
		{"WhenRun of a change", []loop.Task[int, int]{step}, []loop.Option{later, loop.Callback{Name: "rate", WhenRun: whenRun, Changes: true, Start: noChange}},
			"loop: change 1 (rate): panic: bad", true},
		{"BlockSize", []loop.Task[int, int]{loop.On[int, int](loop.EachStep, spoiledSize{loop.StepFunc(add)})}, nil, "block size: panic: bad", true},
		{"OnTurnOf", []loop.Task[int, int]{loop.OnTurnOf(loop.EachStep, func() func(context.Context, *loop.Turn[int, int]) error { panic("bad") })}, nil,
			"loop: at the start: step 0: each step: panic: bad", false},
		{"At", []loop.Task[int, int]{step}, []loop.Option{start(spoiled{at: true}), later}, "loop: at the start: step 0: each step: spoiled: panic: bad", false},
		{"At, alone", []loop.Task[int, int]{step}, []loop.Option{start(spoiled{at: true})}, "loop: step 0: each step: spoiled: panic: bad", false},
		{"Interrupts", []loop.Task[int, int]{step.Named("innocent")}, []loop.Option{loop.Callback{Name: "asked", Start: func(loop.Beginning) (loop.Attendant, error) {
			return spoiled{interrupts: true}, nil
		}}}, "loop: step 1: asked: panic: bad", false},
	} {
		l := loop.New(row.tasks...)
		_, err := l.Run(t.Context(), 0, numbers(3), row.options...)
		require.ErrorContains(t, err, row.want, row.name)
		require.NotContains(t, err.Error(), "innocent")
		var p *loop.PanicError
		require.ErrorAs(t, err, &p, row.name)
		_, err = l.Plan(row.options...)
		if !row.plan {
			require.NoError(t, err, row.name)
			continue
		}
		require.ErrorContains(t, err, row.want, row.name)
	}
	bad := loop.Evaluation[int, int]{Name: "test", Loop: loop.New(step), Data: loop.From(func(int64) iter.Seq2[int, error] { runtime.Goexit(); return nil })}
	_, _, err := bad.Run(t.Context(), 0)
	require.EqualError(t, err, "loop: evaluation test: step 1: data: runtime.Goexit was called")
}

func nobody(loop.Beginning) (loop.Attendant, error)   { return spoiled{}, nil }
func noChange(loop.Beginning) (loop.Attendant, error) { return nil, errors.New("not to be started") }

// The number in an error is that of the options, also where a Place has another order.
func TestCheck_countsAsTheOptionsDo(t *testing.T) {
	fine, first := loop.Watch(loop.EachStep, nothing), loop.Watch(loop.EachStep, nil)
	first.Order = -1
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(t.Context(), 0, numbers(1), fine, loop.Callback{When: loop.EachStep, Changes: true}, fine, first)
	require.EqualError(t, err, "loop: callback 3 (each step): no function given\nchange 1 (each step): no function given")
}

// A mistyped name is the fault of the callback that waits for it, and not of the task that ran last.
func TestCheck_aMistypedEntryNamesItsCallback(t *testing.T) {
	late := loop.WatchEntry("smu", nothing)
	late.Name = "keep best"
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)).Named("train")).Run(t.Context(), 0, numbers(1), late)
	require.EqualError(t, err,
		`loop: step 1: on each smu: keep best: all tasks had a turn: no such entry: "smu" (did you mean metrics.sum?); there are: metrics.sum`)
	require.ErrorIs(t, err, loop.ErrNoEntry)
}

func TestSchedule_atAnEdgeOnce(t *testing.T) {
	require.Equal(t, "at end", loop.AtEnd.AndAtEnd().String())
	require.Equal(t, "at start", loop.AtStart.AndAtStart().String())
	require.Equal(t, "every 5 steps, at start, at end", every(5).AndAtStart().AndAtEnd().AndAtStart().AndAtEnd().String())
	wrong := every(0).Not().AndAtEnd().Or(loop.EachStep)
	require.EqualError(t, wrong.Err(), "every 0 steps: period must be positive, got 0 steps", "the innermost part has its name once")
}
