package loop_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// The plan of a run shows when tasks and callbacks are due, before the run.
func ExampleLoop_Plan() {
	test := loop.Evaluation[int, int]{Name: "test", Loop: loop.New(loop.On(loop.EachStep, loop.StepFunc(add))), Data: ten}
	training := loop.New(
		loop.On(loop.EachStep, loop.StepFunc(add)).Named("train step"),
		test.On(loop.Every(loop.Steps(500)).AndAtStart()))
	plan, err := training.Plan(loop.Until(loop.Steps(2000)),
		loop.Watch(loop.Every(loop.Time(time.Minute)), nothing),
		loop.WatchEntry("sum_test", nothing))
	fmt.Print(plan)
	fmt.Println(err)
	// Output:
	// until 2000 steps
	// tasks
	//   1  each step: train step                       steps 1, 2, 3, 4, …
	//   2  every 500 steps, at start: evaluation test  at the start; steps 500, 1000, 1500, 2000
	// callbacks
	//   1  every 1m0s        depends on time
	//   2  on each sum_test  depends on an entry
	// <nil>
}

var ten = numbers(10)

func nothing(context.Context, loop.Report) error { return nil }

func TestPlan_stepsAreThoseOfTheRun(t *testing.T) {
	for _, when := range []loop.Schedule{
		loop.Every(loop.Steps(7)), loop.At(loop.Steps(13)),
		loop.Never.Then(loop.Steps(20), loop.Every(loop.Steps(9))), loop.Every(loop.Steps(2)).And(loop.Every(loop.Steps(3))),
		loop.Every(loop.Steps(2)).Not(), loop.At(loop.Steps(3)).Or(loop.Every(loop.Steps(30))), loop.Never,
	} {
		for _, from := range []int64{0, 11} {
			var fired []int64
			l := loop.New(loop.OnTurn(when, func(_ context.Context, turn *loop.Turn[int, int]) error {
				fired = append(fired, turn.Elapsed.Steps)
				return nil
			}))
			options := []loop.Option{loop.Until(loop.Steps(40)), loop.Continue(loop.Elapsed{Steps: from}, nil)}
			plan, err := l.Plan(options...)
			require.NoError(t, err)
			_, err = l.Run(t.Context(), 0, rest[int](forever), options...)
			require.NoError(t, err)
			steps, more := plan.FirstSteps()
			require.Equal(t, len(fired) > len(steps), more, when)
			require.Equal(t, fired[:min(len(fired), 4)], steps, when)
		}
	}
}

func TestPlan_checksAsRunDoes(t *testing.T) {
	l := loop.New(loop.On(loop.Every(loop.Steps(0)), loop.StepFunc(add)))
	_, planErr := l.Plan()
	_, runErr := l.Run(t.Context(), 0, numbers(1))
	require.EqualError(t, planErr, runErr.Error())
}

func TestPlan_says(t *testing.T) {
	l := loop.New(loop.On(loop.Every(loop.Samples(64)), loop.StepFunc(add)), loop.On(loop.Never, loop.StepFunc(add)).Named("spare"),
		loop.On(loop.When("odd", func(_, e loop.Elapsed) bool { return e.Steps%2 == 1 }), loop.StepFunc(add)), loop.On(loop.AtEnd, loop.StepFunc(add)))
	plan, err := l.Plan(loop.Continue(loop.Elapsed{Steps: 5}, nil), callbacks.JSONL(os.DevNull, loop.Every(loop.Steps(3))), callbacks.ProgressBar(io.Discard))
	require.NoError(t, err)
	text := plan.String()
	for _, want := range []string{"from 5 steps, until the data ends\n", "every 64 samples  ", "depends on samples\n", "never: spare", "  never\n",
		"odd ", "depends on samples or time\n", "at end  ", "at the end\n", "steps 6, 9, 12, 15, …\n", "progress bar"} {
		require.Contains(t, text, want)
	}
}
