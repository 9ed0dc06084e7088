package train_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train"
)

// A running count over 4 test batches: its last value is what the test says.
func TestB03_lastValueUnderTheSuffix(t *testing.T) {
	counting := loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Stateful("count", float64(s+1))
		return s + 1, logs, nil
	})
	nothing := loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s, loop.Logs{}, nil })
	l := toy{Step: nothing, Epoch: loop.Steps(1), Tests: []check{testOn(4, counting)}}
	result, err := l.Run(t.Context(), 0, upTo(10), loop.Until(loop.Steps(1)))
	require.NoError(t, err)
	_, counts, err := result.History.Series("stateful_metrics.count_test")
	require.NoError(t, err)
	require.Equal(t, []float64{4}, counts)
	t.Logf("B03: row 1 has count_test = %g", counts[0])
}

func TestB05_checkpointEverySecondStep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	save := loop.OnTurn(loop.Every(loop.Steps(2)), func(_ context.Context, turn *turn) error {
		return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, fmt.Sprint(turn.Elapsed.Steps)), fmt.Append(nil, turn.State), 0o644))
	})
	result, err := toy{Step: step, Tasks: []loop.Task[int, int]{save}}.Run(t.Context(), 0, upTo(10), loop.Until(loop.Steps(3)))
	require.NoError(t, err)
	saved, err := os.ReadFile(filepath.Join(dir, "2"))
	require.NoError(t, err)
	require.Equal(t, "3", string(saved))
	require.Equal(t, 3, result.History.Len())
	_, steps, err := result.History.Series("elapsed.steps")
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2, 3}, steps)
	t.Logf("B05: 3 rows, steps %v (Ciclo: 0, 1, 2)", steps)
}

// A nested test each second step, with watchers of what it logs.
func TestB06_testWithMonitors(t *testing.T) {
	both := loop.StepFunc[int, int](func(_ context.Context, s, b int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss", float64(b))
		logs.Metric("accuracy", 1/float64(b))
		return s + b, logs, nil
	})
	resets := 0
	test := loop.Evaluate[int, int]("val", both, upTo(5), loop.Until(loop.Steps(1)))
	test.Reset = func(_ context.Context, s int) (int, error) { resets++; return s, nil }
	var best, stop int
	monitor := func(n *int) func(context.Context, loop.Report) error {
		return func(_ context.Context, r loop.Report) error {
			*n++
			_, err := r.Logs.Float("loss_val")
			return err
		}
	}
	result, err := toy{Step: both, Epoch: loop.Steps(2), Tests: []check{test}}.Run(t.Context(), 0, upTo(50), loop.Until(loop.Steps(12)),
		loop.WatchEntry("loss_val", monitor(&best)), loop.WatchEntry("loss_val", monitor(&stop)))
	require.NoError(t, err)
	require.Equal(t, 12, result.History.Len())
	for _, name := range []string{"loss", "accuracy"} {
		_, values, err := result.History.Series(name)
		require.NoError(t, err)
		require.Len(t, values, 12)
	}
	require.Equal(t, []int{12, 6, 6}, []int{resets, best, stop}, "a reset before and after each")
	t.Logf("B06: 12 rows with loss and accuracy; 6 tests, each reset and seen by both monitors")
}

func TestB16_testBesideTraining(t *testing.T) {
	l := toy{Step: step, Epoch: loop.Steps(10), Tests: []check{testOn(3, step)}}
	result, err := l.Run(t.Context(), 0, upTo(30))
	require.NoError(t, err)
	rows, err := result.History.Collect("elapsed.steps", "sum", "sum_test")
	require.NoError(t, err)
	require.Equal(t, [][]float64{{10, 20, 30}, {55, 210, 465}, {55 + 10./3, 210 + 10./3, 465 + 10./3}}, rows)
	t.Logf("B16: rows with both at steps %v (Ciclo's start at step 0, after one batch)", rows[0])
}

// foreign is a state of somebody else's making, with a way of its own to apply gradients.
type foreign struct{ weight float64 }

func (f foreign) applyGradients(g float64) foreign { return foreign{f.weight - 0.1*g} }

func TestB31_foreignState(t *testing.T) {
	descend := loop.StepFunc[foreign, float64](func(_ context.Context, f foreign, x float64) (foreign, loop.Logs, error) {
		var logs loop.Logs
		logs.Loss("loss", (f.weight-x)*(f.weight-x))
		return f.applyGradients(2 * (f.weight - x)), logs, nil
	})
	data := func(yield func(float64, error) bool) {
		for yield(3, nil) {
		}
	}
	result, err := train.Loop[foreign, float64]{Step: descend}.Run(t.Context(), foreign{}, loop.Data[float64](data), loop.Until(loop.Steps(3)))
	require.NoError(t, err)
	rows, err := result.History.Collect("elapsed.steps", "loss")
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2, 3}, rows[0])
	require.Less(t, rows[1][2], rows[1][0])
	t.Logf("B31: 3 steps, 3 rows, loss %.2f", rows[1])
}

// A step, a hook and a reset may give the zero of the state's type, which is a state as any other.
func TestD06_zeroStateIsKept(t *testing.T) {
	zero := loop.StepFunc[int, int](func(context.Context, int, int) (int, loop.Logs, error) { return 0, loop.Logs{}, nil })
	result, err := toy{Step: zero}.Run(t.Context(), 7, upTo(1))
	require.NoError(t, err)
	require.Zero(t, result.State)
	result, err = toy{Step: step, Epoch: loop.Steps(1), Reset: func(context.Context, int) (int, error) { return 0, nil }}.Run(t.Context(), 7, upTo(3))
	require.NoError(t, err)
	require.Zero(t, result.State)
	t.Log("D06: 0 states dropped")
}

func TestD08_nothingOfTheCallersIsChanged(t *testing.T) {
	var trace tracer
	task := func(name string) loop.Task[int, int] { return loop.OnTurn(loop.EachStep, trace.hook(name)) }
	// Spare capacity, into which a careless append would write.
	tasks := append(make([]loop.Task[int, int], 0, 8), task("a"), task("b"))
	own := &saver{trace: &trace}
	lists := append(make([]hooks, 0, 8), own.hooks(), own.hooks())
	testHooks := append(make([]hooks, 0, 8), own.testHooks(), own.testHooks())
	options := append(make([]loop.Option, 0, 8), loop.Until(loop.Steps(2)))
	tests := append(make([]check, 0, 8), testOn(2, step, testHooks...))
	tests[0].Options = options
	l := toy{Step: step, Epoch: loop.Steps(2), Tests: tests, Tasks: tasks, Hooks: lists}
	var first tracer
	for i := range 3 {
		trace = nil
		result, err := l.Run(t.Context(), 0, upTo(4))
		require.NoError(t, err)
		require.Equal(t, 10, result.State)
		if i == 0 {
			first = trace
		}
		require.Equal(t, first, trace, "run %d", i+1)
	}
	_, _, err := tests[0].Run(t.Context(), 0, loop.Keep(loop.EachStep))
	require.NoError(t, err)
	require.Nil(t, tests[0].Reset)
	require.Equal(t, make([]hooks, 6), lists[2:8])
	require.Equal(t, make([]hooks, 6), testHooks[2:8])
	require.Equal(t, []string{"", ""}, []string{lists[0].Name, testHooks[0].Name})
	for i := range 7 {
		require.Nil(t, options[1:8][i])
	}
	for _, task := range tasks[2:8] {
		require.True(t, reflect.ValueOf(task).IsZero(), "a task was written behind the list")
	}
}

// A context that ends during a test ends the run, with all that training has done until then.
func TestD09_cancelledInATest(t *testing.T) {
	cause := errors.New("the user went home")
	for _, row := range []struct {
		name   string
		report bool // the step notices before the loop does
	}{{"the loop notices", false}, {"the step notices", true}} {
		t.Run(row.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			steps, tested, ended := 0, 0, 0
			l := toy{
				Step: loop.StepFunc[int, int](func(ctx context.Context, s, b int) (int, loop.Logs, error) {
					steps++
					return sum(ctx, s, b)
				}),
				Epoch: loop.Steps(3),
				Tests: []check{testOn(5, loop.StepFunc[int, int](func(ctx context.Context, s, _ int) (int, loop.Logs, error) {
					tested++
					if tested == 7 {
						cancel(cause)
						if row.report {
							return s, loop.Logs{}, context.Cause(ctx)
						}
					}
					return s + 1000, loop.Logs{}, nil
				}))},
			}
			end := attend("end", loop.EachStep, func() loop.Attendant { return attendant{func(loop.Ending) { ended++ }} })
			result, err := l.Run(ctx, 0, upTo(30), end)
			require.ErrorIs(t, err, cause)
			require.ErrorContains(t, err, "loop: step 6: every 3 steps: evaluation test: step 2: ")
			require.Equal(t, loop.Cancelled, result.Reason)
			require.Equal(t, []int{6, 7, 1}, []int{steps, tested, ended})
			require.Equal(t, 21, result.State, "six steps of training and none of the test")
			require.EqualValues(t, 6, result.Elapsed.Steps)
			require.Equal(t, 6, result.History.Len(), "the step before the test is committed")
			t.Logf("D09: cancelled in the second test: %d steps made, %d counted, %d rows", steps, result.Elapsed.Steps, result.History.Len())
		})
	}
}

type attendant struct{ end func(loop.Ending) }

func (attendant) Watch(context.Context, loop.Report) error { return nil }
func (a attendant) End(_ context.Context, e loop.Ending) error {
	a.end(e)
	return nil
}

// 30 steps of training with 8 steps of tests: Jaxloop's counter had 38 then.
func TestD14_testsLeaveTheState(t *testing.T) {
	plus := loop.StepFunc[int, int](func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s + 1, loop.Logs{}, nil })
	for _, row := range []struct {
		keep  bool
		state int
	}{{false, 30}, {true, 38}} {
		l := toy{Step: plus, Epoch: loop.Steps(15), Tests: []check{testOn(4, plus)}}
		l.Tests[0].KeepState = row.keep
		result, err := l.Run(t.Context(), 0, upTo(30))
		require.NoError(t, err)
		require.Equal(t, row.state, result.State)
		require.EqualValues(t, 30, result.Elapsed.Steps)
		t.Logf("D14: KeepState %v: 30 steps gave a state of %d", row.keep, result.State)
	}
}
