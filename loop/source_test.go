package loop_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
)

// placed is a batch that knows its epoch, and its end where known is set.
type placed struct {
	number, epoch int64
	last, known   bool
}

func (p placed) InEpoch() (epoch int64, last, known bool) { return p.epoch, p.last, p.known }

// endless yields batches of epochs of n from a position on, without an end.
func endless(n int64, known bool) loop.Source[placed] {
	return loop.From(func(position int64) iter.Seq2[placed, error] {
		return func(yield func(placed, error) bool) {
			for i := position; yield(placed{i, i / n, known && i%n == n-1, known}, nil); i++ {
			}
		}
	})
}

// oneEpoch is a plain iterator of one epoch of n.
func oneEpoch(n int64) loop.Data[placed] {
	return func(yield func(placed, error) bool) {
		for i := range n {
			if !yield(placed{number: i}, nil) {
				return
			}
		}
	}
}

// seen is a loop that notes the number of each batch, and of those that end an epoch.
func seen(all, ends *[]int64) loop.Loop[int, placed] {
	note := func(list *[]int64) func(context.Context, int, placed) (int, loop.Logs, error) {
		return func(_ context.Context, s int, b placed) (int, loop.Logs, error) {
			*list = append(*list, b.number)
			return s + 1, loop.Logs{}, nil
		}
	}
	return loop.New(loop.On(loop.EachStep, loop.StepFunc(note(all))), loop.On(loop.Every(loop.Epochs(1)), loop.StepFunc(note(ends))))
}

// Epochs are counted in the iteration of their last batch for any knowledge of the source. A run that is interrupted
// anywhere and continued makes the same iterations.
func TestSource_everyKindCountsEpochsAndContinues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, epochs := rapid.Int64Range(1, 5).Draw(t, "batches"), rapid.Int64Range(1, 4).Draw(t, "epochs")
		cut := rapid.Int64Range(0, n*epochs).Draw(t, "cut")
		within := loop.From(func(position int64) iter.Seq2[placed, error] { // it ends with each epoch, and does not know it before
			return func(yield func(placed, error) bool) {
				for i := position; yield(placed{number: i}, nil) && (i+1)%n != 0; i++ {
				}
			}
		})
		for name, source := range map[string]loop.Source[placed]{
			"known": endless(n, true), "unknown": endless(n, false), "plain": oneEpoch(n), "one epoch at a time": within,
		} {
			var all, ends []int64
			l := seen(&all, &ends)
			until := loop.Until(loop.Epochs(epochs))
			whole, err := l.Run(context.Background(), 0, source, until)
			require.NoError(t, err, name)
			require.Equal(t, loop.UntilReached, whole.Reason, name)
			require.Equal(t, n*epochs, whole.Elapsed.Steps, name)
			require.Equal(t, epochs, whole.Elapsed.Epochs, name)
			require.Len(t, ends, int(epochs), name)
			for _, end := range ends {
				require.Equal(t, n-1, end%n, name)
			}
			wantAll, wantEnds := all, ends
			all, ends = nil, nil
			first, err := l.Run(context.Background(), 0, source, until, loop.Watch(loop.At(loop.Steps(cut)), func(context.Context, loop.Report) error { return loop.ErrPause }))
			if cut == 0 {
				first, err = loop.Result[int]{}, nil
				all, ends = nil, nil
			}
			require.NoError(t, err, name)
			second, err := l.Run(context.Background(), first.State, source, until, loop.Continue(first.Elapsed, first.History))
			require.NoError(t, err, name)
			require.Equal(t, wantAll, all, name)
			require.Equal(t, wantEnds, ends, name)
			require.Equal(t, whole.Elapsed.Steps, second.Elapsed.Steps, name)
			require.Equal(t, whole.Elapsed.Epochs, second.Elapsed.Epochs, name)
		}
	})
}

func TestSource_withoutAnEndARunMakesOnePass(t *testing.T) {
	for name, source := range map[string]loop.Source[placed]{"known": endless(3, true), "unknown": endless(3, false), "plain": oneEpoch(3)} {
		var all, ends []int64
		result, err := seen(&all, &ends).Run(t.Context(), 0, source)
		require.NoError(t, err, name)
		require.Equal(t, []int64{0, 1, 2}, all, name)
		require.Equal(t, []int64{2}, ends, name)
		require.Equal(t, loop.DataEnded, result.Reason, name)
		again, err := seen(&all, &ends).Run(t.Context(), 0, source, loop.Continue(result.Elapsed, nil))
		require.NoError(t, err, name)
		require.Equal(t, result.Elapsed.Steps, again.Elapsed.Steps, "%s: it has made its pass", name)
	}
}

func TestSource_stepsGoOverEpochs(t *testing.T) {
	var all, ends []int64
	result, err := seen(&all, &ends).Run(t.Context(), 0, endless(3, true), loop.Until(loop.Steps(7)))
	require.NoError(t, err)
	require.Equal(t, []int64{0, 1, 2, 3, 4, 5, 6}, all)
	require.Equal(t, []int64{2, 5}, ends)
	require.EqualValues(t, 2, result.Elapsed.Epochs)
}

// A plain iterator is never restarted silently: the run skips through it, and one that is too short is an error.
func TestSource_aPlainIteratorIsSkippedThrough(t *testing.T) {
	var all, ends []int64
	_, err := seen(&all, &ends).Run(t.Context(), 0, oneEpoch(5), loop.Continue(loop.Elapsed{Steps: 3}, nil))
	require.NoError(t, err)
	require.Equal(t, []int64{3, 4}, all)
	for _, until := range []loop.Option{nil, loop.Until(loop.Steps(9))} {
		_, err = seen(&all, &ends).Run(t.Context(), 0, oneEpoch(2), loop.Continue(loop.Elapsed{Steps: 3}, nil), until)
		require.EqualError(t, err, "loop: step 4: data: the data ended after 2 batches, but the run continues after batch 3: give it the same data as the earlier run")
	}
	_, err = seen(&all, &ends).Run(t.Context(), 0, oneEpoch(0), loop.Continue(loop.Elapsed{Steps: 3}, nil), loop.Until(loop.Epochs(9)))
	require.EqualError(t, err, "loop: step 4: data: the data ended after 0 batches, but the run continues after batch 3: give it the same data as the earlier run")
}

func TestSource_mistakes(t *testing.T) {
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)))
	for name, data := range map[string]loop.Source[int]{"nil": nil, "a nil iterator": loop.Data[int](nil), "a nil function": loop.From[int](nil)} {
		_, err := l.Run(t.Context(), 0, data)
		require.EqualError(t, err, "loop: no data given", name)
	}
	_, err := l.Run(t.Context(), 0, loop.From(func(int64) iter.Seq2[int, error] { return nil }), loop.Continue(loop.Elapsed{Steps: 3}, nil))
	require.EqualError(t, err, "loop: step 4: data: the source returned no iterator for position 3")
}

// The position is that of the steps, not that of batches that were asked for earlier.
func TestSource_isAskedForThePositionOfTheRun(t *testing.T) {
	var asked []int64
	source := loop.From(func(position int64) iter.Seq2[int, error] {
		asked = append(asked, position)
		return numbers(4).From(0)
	})
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)))
	_, err := l.Run(t.Context(), 0, source, loop.Until(loop.Epochs(3)))
	require.NoError(t, err)
	require.Equal(t, []int64{0, 4, 8}, asked)
	_, err = l.Run(t.Context(), 0, source, loop.Until(loop.Epochs(3)), loop.Continue(loop.Elapsed{Steps: 8, Epochs: 2}, nil))
	require.NoError(t, err)
	require.Equal(t, []int64{0, 4, 8, 8}, asked)
}

// An evaluation of data that an earlier one has used up is an error, not a test on nothing.
func TestEvaluate_dataThatIsUsedUp(t *testing.T) {
	left := 3
	once := loop.Data[int](func(yield func(int, error) bool) {
		for ; left > 0 && yield(left, nil); left-- {
		}
	})
	test := loop.Evaluate("test", loop.StepFunc[int, int](add), once)
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)), test.On(loop.Every(loop.Steps(2)))).Run(t.Context(), 0, numbers(9))
	require.EqualError(t, err, "loop: step 4: every 2 steps: evaluation test: no batch to evaluate on: the data is empty, or an iterator that an earlier evaluation has read to its end")
}

// gathering is a step that sums up in the state, which changes in place.
type gathering struct{ name string }

func (g gathering) Step(_ context.Context, s *sums, n int) (*sums, loop.Logs, error) {
	s.of[g.name] += n
	return s, metric("sum", float64(s.of[g.name])), nil
}

func (g gathering) BeginEvaluation(_ context.Context, s *sums) (func(context.Context) error, error) {
	kept := s.of[g.name]
	s.of[g.name] = 0
	return func(context.Context) error { s.of[g.name] = kept; return nil }, nil
}

type sums struct{ of map[string]int }

// S01: an evaluation starts with empty metrics, leaves those of the training alone, and shares nothing with another
// one of the same step. Without BeginEvaluation the sums would be 3, 6, 9 and more.
func TestS01_evaluationsStartEmpty(t *testing.T) {
	last := map[loop.Collection]loop.Aggregation{loop.Metrics: {}}
	train, step := gathering{"train"}, gathering{"test"}
	one, two := loop.Evaluate("one", step, numbers(3)), loop.Evaluate("two", step, numbers(5))
	own := loop.Evaluate("own", train, numbers(2))
	one.Aggregate, two.Aggregate, own.Aggregate = last, last, last
	every := loop.Every(loop.Steps(2))
	result, err := loop.New(loop.On(loop.EachStep, train), one.On(every), two.On(every), own.On(every)).
		Run(t.Context(), &sums{map[string]int{}}, numbers(6))
	require.NoError(t, err)
	for name, want := range map[string]float64{"sum_one": 0 + 1 + 2, "sum_two": 0 + 1 + 2 + 3 + 4, "sum_own": 0 + 1} {
		_, values, err := result.History.Series(name)
		require.NoError(t, err)
		require.Equal(t, []float64{want, want, want}, values, name)
	}
	_, values, err := result.History.Series("sum")
	require.NoError(t, err)
	require.Equal(t, []float64{0, 1, 3, 6, 10, 15}, values, "the training's go on")
}

// A Reset serves states whose steps do not reset: before the first batch, and after the last for those in place.
func TestEvaluation_Reset(t *testing.T) {
	plain := loop.StepFunc[*sums, int](gathering{"test"}.Step)
	test := loop.Evaluate("test", loop.Stepper[*sums, int](plain), loop.Source[int](numbers(3)))
	test.Aggregate = map[loop.Collection]loop.Aggregation{loop.Metrics: {}}
	resets := 0
	test.Reset = func(_ context.Context, s *sums) (*sums, error) {
		resets++
		s.of["test"] = 0
		return s, nil
	}
	for range 2 {
		_, logs, err := test.Run(t.Context(), &sums{map[string]int{"test": 7}})
		require.NoError(t, err)
		require.Equal(t, "[{metrics sum_test 3}]", fmt.Sprint(entriesOf(t, logs)))
	}
	require.Equal(t, 4, resets)
}

func entriesOf(t *testing.T, logs loop.Logs) (list []string) {
	for e := range logs.All() {
		v, err := e.Value.Float()
		require.NoError(t, err)
		list = append(list, fmt.Sprintf("{%s %s %v}", e.Collection, e.Name, v))
	}
	return list
}
