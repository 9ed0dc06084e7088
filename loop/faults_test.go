package loop_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// hook is one kind of place where a run calls other people's code.
type hook struct {
	place string
	// where is the place in the error, and step the step in it, after a fault at the first call.
	where string
	step  int64
}

// hooks is a run in which each kind of hook calls at with its place. It has two attendants besides, which note their
// end.
type hooks struct {
	loop    loop.Loop[int, int]
	data    loop.Data[int]
	options []loop.Option
	ended   int
}

// prefix is the beginning of an error of the hook.
func (h hook) prefix() string {
	when := map[string]string{"start": "at the start: ", "end": "at the end: "}[h.place]
	return fmt.Sprintf("loop: %sstep %d: %s: ", when, h.step, h.where)
}

var hookKinds = []hook{
	{"on", "each step: stepper", 1},
	{"on func", "each step: function", 1},
	{"on turn", "each step: turn", 1},
	{"at start", "at start: first task", 0},
	{"at end", "at end: last task", 2},
	{"block", "each step: block stepper", 1},
	{"when of a task", "schedule when asked", 1},
	{"when of a watcher", "schedule when asked", 1},
	{"when of keep", "schedule when asked", 1},
	{"data", "data", 3},
	{"value", "each step: reader", 1},
	{"watcher", "each step", 1},
	{"callback at the start", "at start", 0},
	{"callback of an entry", "on each m", 1},
	{"start", "each step: attendant", 0},
	{"watch", "each step: attendant", 1},
	{"end", "each step: attendant", 2},
	{"evaluation's data", "each step: evaluation test", 1},
	{"inner task", "each step: evaluation test: step 1: each step: inner", 1},
	{"inner watcher", "each step: evaluation test: step 1: each step", 1},
}

// value is a number that takes somebody's code to read.
type value func() (float64, error)

func (v value) Float() (float64, error) { return v() }

type callingStepper struct{ at func() error }

func (c callingStepper) String() string { return "stepper" }
func (c callingStepper) Step(_ context.Context, s, _ int) (int, loop.Logs, error) {
	return s, loop.Logs{}, c.at()
}

type callingBlocks struct{ callingStepper }

func (c callingBlocks) String() string { return "block stepper" }
func (c callingBlocks) BlockSize() int { return 4 }
func (c callingBlocks) StepBlock(_ context.Context, s int, b []int) (int, []loop.Logs, error) {
	err := c.at()
	if err != nil && !errors.Is(err, loop.ErrStop) {
		return s, nil, err // no step was made
	}
	return s, make([]loop.Logs, len(b)), err
}

type callingAttendant struct{ watch, end func() error }

func (c callingAttendant) Watch(context.Context, loop.Report) error { return c.watch() }
func (c callingAttendant) End(context.Context, loop.Ending) error   { return c.end() }

// newHooks makes a run of two steps. The hook returns the result of at as its error, where it can have one.
func newHooks(place string, at func() error) *hooks {
	h := &hooks{}
	call := func(here string) error {
		if here == place {
			return at()
		}
		return nil
	}
	must := func(here string) { // for hooks that cannot return an error
		if err := call(here); err != nil {
			panic(err)
		}
	}
	step := func(here string) func(context.Context, int, int) (int, loop.Logs, error) {
		return func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s, loop.Logs{}, call(here) }
	}
	watch := func(here string) func(context.Context, loop.Report) error {
		return func(context.Context, loop.Report) error { return call(here) }
	}
	when := func(here string) loop.Schedule {
		return loop.When("when asked", func(_, _ loop.Elapsed) bool { must(here); return false })
	}
	ends := attend("witness", loop.Never, func() loop.Attendant { return ender{func() error { h.ended++; return nil }} })

	test := loop.Evaluation[int, int]{Name: "test", Loop: loop.New(loop.On(loop.EachStep, loop.StepFunc(step("inner task"))).Named("inner")),
		Data: loop.From(func(int64) iter.Seq2[int, error] {
			err := call("evaluation's data")
			return func(yield func(int, error) bool) {
				if err != nil {
					yield(0, err)
					return
				}
				numbers(2)(yield)
			}
		}),
		Options: []loop.Option{loop.Watch(loop.EachStep, watch("inner watcher"))}}
	first := loop.On(loop.EachStep, loop.Stepper[int, int](callingStepper{func() error { return call("on") }}))
	if place == "block" {
		first = loop.On(loop.EachStep, loop.Stepper[int, int](callingBlocks{callingStepper{func() error { return call("block") }}}))
	}
	h.loop = loop.New(first,
		loop.On(loop.EachStep, loop.StepFunc(step("on func"))).Named("function"),
		loop.OnTurn(loop.EachStep, func(_ context.Context, turn *loop.Turn[int, int]) error {
			turn.Logs.Set(loop.Metrics, "m", value(func() (float64, error) { return 1, call("value") }))
			return call("on turn")
		}).Named("turn"),
		loop.On(loop.AtStart, loop.StepFunc(step("at start"))).Named("first task"),
		loop.On(loop.AtEnd, loop.StepFunc(step("at end"))).Named("last task"),
		loop.On(when("when of a task"), loop.StepFunc(step(""))).Named("rare task"),
		test.On(loop.EachStep),
		loop.On(loop.EachStep, loop.StepFunc(add)).Named("adder"))
	h.data = func(yield func(int, error) bool) {
		for range 2 {
			if !yield(1, nil) {
				return
			}
		}
		if err := call("data"); err != nil {
			yield(0, err)
		}
	}
	h.options = []loop.Option{ends,
		loop.Keep(when("when of keep")),
		loop.Watch(loop.EachStep, watch("watcher")),
		loop.Watch(loop.AtStart, watch("callback at the start")),
		loop.WatchEntry("m", watch("callback of an entry")),
		loop.Watch(when("when of a watcher"), watch("")),
		attend("attendant", loop.EachStep, func() loop.Attendant {
			must("start")
			return callingAttendant{func() error { return call("watch") }, func() error { return call("end") }}
		}),
		attend("reader", loop.EachStep, func() loop.Attendant { return reading{} }),
	}
	return h
}

// reading reads the value that was logged.
type reading struct{}

func (reading) Watch(_ context.Context, r loop.Report) error { _, err := r.Logs.Float("m"); return err }
func (reading) End(context.Context, loop.Ending) error       { return nil }

type badSize struct{ callingBlocks }

func (badSize) BlockSize() int { panic("boom") }

// The run asks for the block size before it starts anything, so no callback sees the end.
func TestF13_panicInABlockSize(t *testing.T) {
	started := 0
	witness := attend("witness", loop.Never, func() loop.Attendant { started++; return &attendant{} })
	result, err := loop.New(loop.On(loop.EachStep, loop.Stepper[int, int](badSize{}))).Run(t.Context(), 0, numbers(1), witness)
	require.EqualError(t, err, "loop: at the start: step 0: block size: panic: boom")
	require.Equal(t, loop.Failed, result.Reason)
	require.Zero(t, started)
}

type badName struct{ callingStepper }

func (*badName) String() string { panic("boom") }
