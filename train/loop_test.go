package train_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// upTo yields 1…n.
func upTo(n int) loop.Data[int] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i+1, nil) {
				return
			}
		}
	}
}

// testOn is a test on n batches.
func testOn(n int, step loop.Stepper[int, int], hooks ...hooks) check {
	return train.Test("test", step, upTo(n), hooks...)
}

// sum adds the batch to the state and logs it.
func sum(_ context.Context, state, batch int) (int, loop.Logs, error) {
	var logs loop.Logs
	logs.Metric("sum", float64(state+batch))
	return state + batch, logs, nil
}

var step = loop.StepFunc[int, int](sum)

type (
	turn  = loop.Turn[int, int]
	hooks = train.Hooks[int, int]
	toy   = train.Loop[int, int]
	check = loop.Evaluation[int, int]
)

// tracer notes what is called.
type tracer []string

func (t *tracer) hook(what string) func(context.Context, *turn) error {
	return func(_ context.Context, turn *turn) error {
		*t = append(*t, fmt.Sprintf("%s@%d", what, turn.Elapsed.Steps))
		return nil
	}
}

func (t *tracer) step(what string) loop.Stepper[int, int] {
	return loop.StepFunc[int, int](func(ctx context.Context, s, b int) (int, loop.Logs, error) {
		*t = append(*t, what)
		return sum(ctx, s, b)
	})
}

func (t *tracer) reset(_ context.Context, s int) (int, error) {
	*t = append(*t, "reset")
	return s, nil
}

func (t *tracer) hooks() hooks {
	return hooks{Begin: t.hook("train begin"), BatchBegin: t.hook("batch begin"), AfterStep: t.hook("after step"),
		AfterReset: t.hook("after reset"), EpochEnd: t.hook("epoch end"), BatchEnd: t.hook("batch end"), End: t.hook("train end")}
}

func (t *tracer) testHooks() hooks {
	return hooks{Begin: t.hook("test begin"), AfterReset: t.hook("test after reset"), BatchBegin: t.hook("test batch begin"),
		AfterStep: t.hook("after test step"), BatchEnd: t.hook("test batch end"), End: t.hook("test end")}
}

func TestLoop_order(t *testing.T) {
	var trace tracer
	check := testOn(1, trace.step("test step"), trace.testHooks())
	check.Reset = trace.reset
	l := toy{
		Step: trace.step("step"), Reset: trace.reset, Epoch: loop.Steps(2), TestAtStart: true,
		Hooks: []hooks{trace.hooks()},
		Tests: []loop.Evaluation[int, int]{check},
		Tasks: []loop.Task[int, int]{loop.OnTurn(loop.EachStep, trace.hook("task")), loop.OnTurn(loop.AtEnd, trace.hook("last task"))},
	}
	_, err := l.Run(t.Context(), 0, upTo(2))
	require.NoError(t, err)
	test := []string{"reset", "test begin@0", "test after reset@0", "test batch begin@1", "test step", "after test step@1", "test batch end@1", "test end@1", "reset"}
	require.Equal(t, slices.Concat(
		[]string{"train begin@0"}, test,
		[]string{"batch begin@1", "step", "after step@1", "batch end@1", "task@1"},
		[]string{"batch begin@2", "step", "after step@2", "reset", "after reset@2"}, test, []string{"epoch end@2", "batch end@2", "task@2"},
		[]string{"last task@2", "train end@2"},
	), []string(trace))
}

func TestD03_epochsEndAfterTheirSteps(t *testing.T) {
	for _, row := range []struct {
		name    string
		epoch   loop.Period
		atStart bool
		steps   int
		ends    []int64
		tests   []int64
	}{
		{name: "12 steps of 3", epoch: loop.Steps(3), steps: 12, ends: []int64{3, 6, 9, 12}, tests: []int64{3, 6, 9, 12}},
		{name: "tested at the start", epoch: loop.Steps(3), atStart: true, steps: 12, ends: []int64{3, 6, 9, 12}, tests: []int64{0, 3, 6, 9, 12}},
		{name: "the last one is cut short", epoch: loop.Steps(3), steps: 8, ends: []int64{3, 6}, tests: []int64{3, 6}},
		{name: "samples", epoch: loop.Samples(4), steps: 9, ends: []int64{4, 8}, tests: []int64{4, 8}},
		{name: "a pass over the data", epoch: loop.Epochs(1), steps: 5, ends: []int64{5}, tests: []int64{5}},
		{name: "none: the run is one epoch", steps: 5, ends: []int64{5}, tests: []int64{5}},
		{name: "none, tested at the start", steps: 5, atStart: true, ends: []int64{5}, tests: []int64{0, 5}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var ends []int64
			l := toy{Step: step, Epoch: row.epoch, TestAtStart: row.atStart, Tests: []check{testOn(2, step)},
				Hooks: []hooks{{EpochEnd: func(_ context.Context, turn *turn) error {
					ends = append(ends, turn.Elapsed.Steps)
					return nil
				}}}}
			result, err := l.Run(t.Context(), 0, upTo(row.steps))
			require.NoError(t, err)
			require.Equal(t, row.ends, ends)
			steps, _, err := result.History.Series("sum_test")
			require.NoError(t, err)
			var tests []int64
			for _, e := range steps {
				tests = append(tests, e.Steps)
			}
			require.Equal(t, row.tests, tests)
			t.Logf("D03: epochs end after %v, tests after %v", ends, tests)
		})
	}
}

// Whatever the numbers are: as many epochs end as fit into the run, and each test sees each of its batches once.
func TestLoop_countsOfEpochs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps, epoch := rapid.IntRange(0, 40).Draw(t, "steps"), rapid.IntRange(1, 12).Draw(t, "epoch")
		batches, atStart := rapid.IntRange(1, 4).Draw(t, "test batches"), rapid.Bool().Draw(t, "at start")
		var trace tracer
		l := toy{Step: step, Epoch: loop.Steps(epoch), TestAtStart: atStart,
			Hooks: []hooks{{EpochEnd: trace.hook("end")}},
			Tests: []check{testOn(batches, trace.step("test"))}}
		result, err := l.Run(context.Background(), 0, upTo(steps))
		if err != nil || result.State != steps*(steps+1)/2 {
			t.Fatal(err, result.State)
		}
		want, tests := steps/epoch, steps/epoch
		if atStart && steps > 0 {
			tests++
		}
		if got := count(trace, "test"); got != tests*batches {
			t.Fatalf("%d steps of tests, want %d", got, tests*batches)
		}
		if got := len(trace) - tests*batches; got != want {
			t.Fatalf("%d epochs ended, want %d", got, want)
		}
	})
}

func count(list []string, what string) (n int) {
	for _, s := range list {
		if s == what {
			n++
		}
	}
	return n
}

// blocks steps singly or in blocks, and notes how many there were at once.
type blocks struct {
	loop.Stepper[int, int]
	sizes *[]int
}

func (b blocks) BlockSize() int { return 64 }

func (b blocks) StepBlock(ctx context.Context, s int, batches []int) (int, []loop.Logs, error) {
	*b.sizes = append(*b.sizes, len(batches))
	all := make([]loop.Logs, len(batches))
	for i, x := range batches {
		s, all[i], _ = sum(ctx, s, x)
	}
	return s, all, nil
}

func TestLoop_runsInBlocks(t *testing.T) {
	var trace tracer
	for _, row := range []struct {
		name  string
		hooks hooks
		most  int
	}{
		{"no hook in each turn", hooks{Begin: trace.hook("b"), EpochEnd: trace.hook("e"), End: trace.hook("e")}, 16},
		{"a hook in each turn", hooks{AfterStep: trace.hook("s")}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			var sizes []int
			l := toy{Step: blocks{step, &sizes}, Epoch: loop.Steps(40), Hooks: []hooks{row.hooks},
				Tests: []check{testOn(1, step)}}
			result, err := l.Run(t.Context(), 0, upTo(120))
			require.NoError(t, err)
			require.Equal(t, 120*121/2, result.State)
			require.Equal(t, 120, result.History.Len())
			total := 0
			for _, n := range sizes {
				total += n
			}
			require.Equal(t, 120, total)
			if row.most == 1 {
				require.Equal(t, 1, slices.Max(sizes))
			} else {
				require.Greater(t, slices.Max(sizes), 1) // how far they grow depends on the time they take
			}
			_, tests, err := result.History.Series("sum_test")
			require.NoError(t, err)
			require.Equal(t, []float64{821, 3241, 7261}, tests)
		})
	}
}

func TestLoop_plan(t *testing.T) {
	l := toy{Step: step, Epoch: loop.Steps(5), Tests: []check{testOn(1, step)}}
	plan, err := l.Plan(loop.Until(loop.Steps(20)))
	require.NoError(t, err)
	require.Equal(t, "until 20 steps\ntasks\n  1  each step: train step           steps 1, 2, 3, 4, …\n  2  every 5 steps: evaluation test  steps 5, 10, 15, 20\n", plan.String())
	_, err = toy{}.Plan()
	require.EqualError(t, err, "loop: task 1 (each step: train step): no function given")
}
