package loop_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

// If a hook fails at any step, the counted iterations are in the state and in the history, and a resumed run repeats no
// step and leaves none out.
func TestF13_failureAtEachStep(t *testing.T) {
	const steps, last = 20, 25
	boom := errors.New("boom")
	cases := 0
	for _, row := range []struct {
		place   string
		counted bool // the turn that failed is counted: a task had changed the state before
	}{
		{"first task", false}, {"second task", true}, {"evaluation", true}, {"watcher", true}, {"callback of an entry", true}, {"value", true},
		{"data", false},
	} {
		for _, panics := range []bool{false, true} {
			for k := range steps {
				k := int64(k + 1)
				at := func(place string, step int64) error {
					if place != row.place || step != k {
						return nil
					}
					if panics {
						panic(boom)
					}
					return boom
				}
				training := func(at func(string, int64) error) (loop.Loop[int64, int64], func(from int64) loop.Data[int64], []loop.Option) {
					step := func(place string, by int64) loop.Task[int64, int64] {
						return loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, n int64) (int64, loop.Logs, error) {
							err := at(place, n)
							var logs loop.Logs
							logs.Set(loop.Metrics, place, value(func() (float64, error) { return float64(n), at("value", n) }))
							return s + by*n, logs, err
						}))

					}
					test := loop.Evaluation[int64, int64]{Data: loop.Data[int64](func(yield func(int64, error) bool) { yield(1, nil) })}
					inner := func(n int64) loop.Task[int64, int64] {
						return loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int64) (int64, loop.Logs, error) {
							return s, loop.Logs{}, at("evaluation", n)
						}))

					}
					evaluate := loop.OnTurn(loop.EachStep, func(ctx context.Context, turn *loop.Turn[int64, int64]) error {
						test.Loop = loop.New(inner(turn.Batch))
						_, _, err := test.Run(ctx, turn.State)
						return err
					})
					data := func(from int64) loop.Data[int64] {
						return func(yield func(int64, error) bool) {
							for i := from + 1; ; i++ {
								err := at("data", i)
								if !yield(i, err) || err != nil {
									return
								}
							}
						}
					}
					watch := func(place string) func(context.Context, loop.Report) error {
						return func(_ context.Context, r loop.Report) error { return at(place, r.Elapsed.Steps) }
					}
					return loop.New(step("first task", 1), step("second task", 0), evaluate), data, []loop.Option{
						loop.Watch(loop.EachStep, watch("watcher")),
						loop.WatchEntry("first task", watch("callback of an entry")),
						loop.WatchEntry("second task", func(_ context.Context, r loop.Report) error { _, err := r.Logs.Float("second task"); return err }),
					}
				}
				l, data, options := training(at)
				result, err := l.Run(t.Context(), 0, data(0), options...)
				require.ErrorIs(t, err, boom, row.place)
				require.ErrorContains(t, err, fmt.Sprintf("loop: step %d: ", k))
				require.Equal(t, loop.Failed, result.Reason)
				counted := k
				if !row.counted {
					counted--
				}
				require.Equal(t, counted, result.Elapsed.Steps, "%s at %d", row.place, k)
				require.Equal(t, counted, result.Elapsed.Samples)
				require.Equal(t, counted*(counted+1)/2, result.State, "%s at %d", row.place, k)
				require.EqualValues(t, counted, result.History.Len(), "%s at %d", row.place, k)

				l, data, options = training(func(string, int64) error { return nil })
				resumed, err := l.Run(t.Context(), result.State, rest(data(result.Elapsed.Steps)),
					append(options, loop.Continue(result.Elapsed, result.History), loop.Until(loop.Steps(last)))...)
				require.NoError(t, err)
				require.EqualValues(t, last*(last+1)/2, resumed.State)
				rows, err := resumed.History.Collect("elapsed.steps")
				require.NoError(t, err)
				require.Equal(t, upTo(1, last), rows[0])
				cases++
			}
		}
	}
	t.Logf("F13: %d failures at steps 1 to %d: state, elapsed and history agree, and all resumed without a step twice", cases, steps)
}

func TestF13_panicsInEachKindOfHook(t *testing.T) {
	errValue := errors.New("an error value")
	cases := 0
	for _, kind := range hookKinds {
		for _, value := range []any{errValue, "text", 7, nilMapWrite, runtime.Goexit} {
			t.Run(fmt.Sprintf("%T in %s", value, kind.place), func(t *testing.T) {
				h := newHooks(kind.place, func() error {
					if f, ok := value.(func()); ok {
						f()
					}
					panic(value)
				})
				result, err := h.loop.Run(t.Context(), 0, h.data, h.options...)
				var p *loop.PanicError
				require.ErrorAs(t, err, &p)
				require.Contains(t, string(p.Stack), "task_test.go", "the stack says where")
				require.ErrorContains(t, err, kind.prefix())
				if value == errValue {
					require.ErrorIs(t, err, errValue)
				}
				require.Equal(t, loop.Failed, result.Reason)
				require.Equal(t, 1, h.ended, "the finish phase ran")
				cases++
			})
		}
	}
	t.Logf("F13: %d panics in %d kinds of hook became errors that name step and place, 0 escaped, each finish phase ran", cases, len(hookKinds))
}

// The name of a task is asked for when it is made, on the caller's goroutine.
func TestF13_panicInAName(t *testing.T) {
	stepper := &badName{callingStepper{func() error { return errors.New("no luck") }}}
	_, err := loop.New(loop.On(loop.EachStep, loop.Stepper[int, int](stepper))).Run(t.Context(), 0, numbers(1))
	require.ErrorContains(t, err, "PANIC=String method: boom")
	require.ErrorContains(t, err, "no luck")
}

func TestRun_refusesBadSettings(t *testing.T) {
	ok := loop.On(loop.EachStep, loop.StepFunc(add))
	for _, row := range []struct {
		name, err string
		tasks     []loop.Task[int, int]
		options   []loop.Option
		data      loop.Data[int]
	}{
		{name: "zero period", err: "loop: task 2 (every 0 steps: late): period must be positive, got 0 steps", data: numbers(1),
			tasks: []loop.Task[int, int]{ok, loop.On(loop.Every(loop.Steps(0)), loop.StepFunc(add)).Named("late")}},
		{name: "negative time", err: "loop: task 1 (at -1s): period must be positive, got -1s", data: numbers(1),
			tasks: []loop.Task[int, int]{loop.On(loop.At(loop.Time(-time.Second)), loop.StepFunc(add))}},
		{name: "no period", err: `loop: task 1 (every): schedule "every" has no period`, data: numbers(1), tasks: []loop.Task[int, int]{loop.On(loop.Every(nil), loop.StepFunc(add))}},
		{name: "no function", err: "loop: task 1 (each step): no function given", data: numbers(1), tasks: []loop.Task[int, int]{loop.On(loop.EachStep, loop.StepFunc[int, int](nil))}},
		{name: "no watcher", err: "loop: callback 1 (each step): no function given", data: numbers(1), tasks: []loop.Task[int, int]{ok}, options: []loop.Option{loop.Watch(loop.EachStep, nil)}},
		{name: "negative until", err: "loop: until: period must be zero or positive, got -1 steps", data: numbers(1), tasks: []loop.Task[int, int]{ok}, options: []loop.Option{loop.Until(loop.Steps(-1))}},
		{name: "no data", err: "loop: no data given", tasks: []loop.Task[int, int]{ok}},
	} {
		t.Run(row.name, func(t *testing.T) {
			result, err := loop.New(row.tasks...).Run(t.Context(), 3, row.data, row.options...)
			require.EqualError(t, err, row.err)
			require.Equal(t, 3, result.State)
			require.Equal(t, loop.Failed, result.Reason)
		})
	}
}

func TestOnTurn_seesAndChangesAll(t *testing.T) {
	l := loop.New(
		loop.On(loop.EachStep, loop.StepFunc(add)),
		loop.OnTurn(loop.EachStep, func(_ context.Context, turn *loop.Turn[int, int]) error {
			sum, err := turn.Logs.Float("sum")
			turn.Logs.Metric("twice", 2*sum)
			turn.State += 1000
			return err
		}))
	result, err := l.Run(t.Context(), 0, numbers(2))
	require.NoError(t, err)
	require.Equal(t, 2001, result.State)
	_, twice, err := result.History.Series("metrics.twice")
	require.NoError(t, err)
	require.Equal(t, []float64{0, 2 * 1001}, twice)
}

func TestB01_twoTasksCountForThemselves(t *testing.T) {
	count := func(which func(*counters) *int) loop.Stepper[counters, int] {
		return loop.StepFunc(func(_ context.Context, c counters, _ int) (counters, loop.Logs, error) {
			*which(&c)++
			return c, loop.Logs{}, nil
		})
	}
	l := loop.New(
		loop.On[counters, int](loop.EachStep, count(func(c *counters) *int { return &c.each })),
		loop.On[counters, int](loop.Every(loop.Steps(2)), count(func(c *counters) *int { return &c.second })))
	result, err := l.Run(t.Context(), counters{}, numbers(10))
	require.NoError(t, err)
	require.Equal(t, counters{10, 5}, result.State)
}

// A run within the data of another begins with the steps that wait there.
func TestS03_aRunWithinTheData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, seen := &weight{}, []int{}
		training := loop.New(loop.On[*weight, int](loop.EachStep, learner{block: 8}))
		test := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, w *weight, _ int) (*weight, loop.Logs, error) {
			v, err := w.read()
			seen = append(seen, v)
			return w, loop.Logs{}, err
		})))
		data := func(yield func(int, error) bool) {
			for i := range 9 {
				if i%4 == 3 {
					_, err := test.Run(t.Context(), w, numbers(1))
					require.NoError(t, err)
				}
				if !yield(1, nil) {
					return
				}
			}
		}
		_, err := training.Run(t.Context(), w, loop.Data[int](data))
		require.NoError(t, err)
		require.Equal(t, []int{3, 7}, seen)
		require.Empty(t, w.onRead)
	})
}

// Whatever the data reads, and whenever, the run with blocks equals the run without.
func TestS03_blocksAreAsSingleSteps(t *testing.T) {
	together := 0
	rapid.Check(t, func(t *rapid.T) {
		r := reader{n: evenly(t, 60, "n"), every: 1 + evenly(t, 9, "every"), after: 1 + evenly(t, 19, "after"), learner: learner{block: 2 + evenly(t, 10, "block")}}
		if oneIn(t, 2, "stops") {
			steps, at, err := 0, 1+evenly(t, r.n, "at"), pick(t, []error{errBoom, loop.ErrStop}, "what")
			r.comes = func(int) error {
				if steps++; steps == at {
					return err
				}
				return nil
			}
			r.options = func(*reader) []loop.Option { steps = 0; return nil }
		}
		rapid.SyncTest(t, func(t *rapid.T) {
			single, blocks := r, r
			single.run(t, false)
			blocks.run(t, true)
			for _, size := range blocks.sizes {
				together += size - 1
			}
			if r.comes == nil {
				require.Equal(t, single.seen, blocks.seen)
				return
			}
			// If a step fails or stops, the data has been asked for a further batch, and its reads for that differ.
			outcome := func(seen []string) []string {
				return slices.DeleteFunc(seen, func(s string) bool { return s[:4] == "batc" })
			}
			require.Equal(t, outcome(single.seen), outcome(blocks.seen))
		})
	})
	require.Positive(t, together)
}

// data.Prefetch and data.ParallelMap are ahead of the steps, so the result of a read would depend on the time: it is an
// error, with blocks and without.
func TestS03_aReadAheadIsRefused(t *testing.T) {
	reading := func(w *weight) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for range 20 {
				if v, err := w.read(); !yield(v, err) || err != nil {
					return
				}
			}
		}
	}
	for name, source := range map[string]func(*weight) iter.Seq2[int, error]{
		"Prefetch": func(w *weight) iter.Seq2[int, error] { return data.Prefetch(reading(w), 2) },
		"ParallelMap": func(w *weight) iter.Seq2[int, error] {
			return data.ParallelMap(iter.Seq2[int, error](numbers(20)), 2, func(int) (int, error) { return w.read() })
		},
		"a deep stack": func(w *weight) iter.Seq2[int, error] {
			return data.Prefetch(func(yield func(int, error) bool) { deep(200, func() { reading(w)(yield) }) }, 2)
		},
	} {
		steps := map[string]loop.Stepper[*weight, int]{"blocks": learner{block: 8}, "no blocks": learner{}.single()}
		for kind, step := range steps {
			for _, option := range []loop.Option{nil, loop.SingleSteps()} {
				t.Run(name+" "+kind, func(t *testing.T) {
					w := &weight{}
					_, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), w, loop.Data[int](source(w)), option)
					require.EqualError(t, err, "loop: step 1: data: the state was read on a goroutine of data.Prefetch or data.ParallelMap, which makes "+
						"batches before the steps of earlier ones: read it in the data source, outside Prefetch and ParallelMap")
				})
			}
		}
	}
}

func TestRun_ofStepsThatMeasureReadsAllExamples(t *testing.T) {
	for name, c := range map[string]struct {
		steps []mean
		want  int64
	}{
		"measures":        {[]mean{{true}, {true}}, 5},
		"one that trains": {[]mean{{true}, {false}}, 4},
	} {
		var tasks []loop.Task[int, group]
		for _, s := range c.steps {
			tasks = append(tasks, loop.On(loop.EachStep, s).Named("step"))
		}
		result, err := loop.New(tasks...).Run(t.Context(), 0, halves{}, loop.SingleSteps())
		require.NoError(t, err, name)
		require.Equal(t, c.want, result.Elapsed.Samples, name)
	}
}
