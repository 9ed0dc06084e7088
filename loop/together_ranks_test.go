package loop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// S05: a short trial run of a program whose evaluations are due later is no error.
func TestS05_whatIsNotReachedIsNoError(t *testing.T) {
	until := loop.Until(loop.Steps(5))
	const hint = ", however long the run is: its parts exclude each other; to leave it out, use loop.Never"
	for _, row := range []struct {
		name    string
		when    loop.Schedule
		options []loop.Option
		err     string // after the name of the task
	}{
		{"every", loop.Every(loop.Steps(6)), []loop.Option{until}, ""},
		{"at", loop.At(loop.Steps(6)), []loop.Option{until}, ""},
		{"after", loop.Never.Then(loop.Steps(3), loop.Every(loop.Steps(3))), []loop.Option{until}, ""},
		{"a contradiction", loop.EachStep.And(loop.Never), []loop.Option{loop.Until(loop.Time(time.Hour))}, "(each step and never: rare): never due" + hint},
		{"in the last turn", loop.Every(loop.Steps(5)), []loop.Option{until}, ""},
		{"at the end", loop.Every(loop.Steps(6)).AndAtEnd(), []loop.Option{until}, ""},
		{"at the start", loop.Every(loop.Steps(6)).AndAtStart(), []loop.Option{until}, ""},
		{"meant", loop.Never, []loop.Option{until}, ""},
		{"samples: nobody knows how many a turn has", loop.Every(loop.Samples(6)), []loop.Option{until}, ""},
		{"time", loop.Every(loop.Time(time.Hour)), []loop.Option{until}, ""},
		{"a function", loop.When("never", func(_, _ loop.Elapsed) bool { return false }), []loop.Option{until}, ""},
		{"no end said", loop.Every(loop.Steps(600)), nil, ""},
		{"no turn is made", loop.Every(loop.Steps(600)), []loop.Option{loop.Until(loop.Steps(0))}, ""},
		{"it was due in the run that is resumed", loop.At(loop.Steps(2)), []loop.Option{until, loop.Continue(loop.Elapsed{Steps: 3}, nil)}, ""},
		{"it is due after the resume", loop.At(loop.Steps(4)), []loop.Option{until, loop.Continue(loop.Elapsed{Steps: 3}, nil)}, ""},
		{"resumed at the end", loop.Every(loop.Steps(5)), []loop.Option{until, loop.Continue(loop.Elapsed{Steps: 5}, nil)}, ""},
		{"resumed, and still out of reach", loop.Every(loop.Steps(6)), []loop.Option{until, loop.Continue(loop.Elapsed{Steps: 3}, nil)}, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			steps := 0
			each := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { steps++; return s, loop.Logs{}, nil }))
			_, err := loop.New(each, loop.On(row.when, loop.StepFunc(add)).Named("rare")).Run(t.Context(), 0, numbers(10), row.options...)
			_, watchErr := loop.New(each).Run(t.Context(), 0, numbers(10),
				append(row.options, attend("rare", row.when, func() loop.Attendant { return &attendant{} }))...)
			if row.err == "" {
				require.NoError(t, err)
				require.NoError(t, watchErr)
				return
			}
			require.EqualError(t, err, "loop: task 2 "+row.err)
			require.EqualError(t, watchErr, "loop: callback 1 "+row.err)
			require.Zero(t, steps, "before anything is done")
		})
	}
}

// If one process alone makes a run within a callback, all processes report which run it is and where the others are.
func TestJob_aRunOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := together(3, func(rank int, s member) (loop.Result[member], error) {
			return memberLoop.Run(t.Context(), s, numbers(10), loop.Until(loop.Steps(6)), loop.Watch(loop.At(loop.Steps(3)), func(ctx context.Context, _ loop.Report) error {
				if rank != 1 {
					return nil
				}
				_, err := loop.New(loop.On(loop.Every(loop.Steps(2)), loop.StepFunc(memberAdd))).Run(ctx, s, numbers(3))
				return err
			}))
		})
		for _, e := range all {
			require.Regexp(t, `the processes are not at the same place: rank 1 begins a run of every 2 steps.*, and rank [02] does not: `+
				`rank [02] is after the tasks and callbacks of the step \(step 3 of the run of each step.*\): a run within a task or callback, .* must be made by all ranks`, e.err)
		}
	})
}
