package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// ended is all that can be seen of a run that ended.
type ended struct {
	state   int
	at      loop.Elapsed
	reason  loop.Reason
	stop    string
	err     string
	rows    string
	watched []int64
}

// endOf runs a stepper on each step, with a watcher on every 25 and at the end.
func endOf(t *testing.T, stepper loop.Stepper[int, int], data func(context.CancelCauseFunc) loop.Data[int]) (ended, error) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var e ended
	watch := loop.Watch(loop.Every(loop.Steps(25)).AndAtEnd(), func(_ context.Context, r loop.Report) error {
		e.watched = append(e.watched, r.Elapsed.Steps)
		return nil
	})
	result, err := loop.New(loop.On[int, int](loop.EachStep, stepper).Named("adder")).Run(ctx, 0, data(cancel), watch)
	e.state, e.at, e.reason = result.State, counts(result.Elapsed), result.Reason
	if err != nil {
		e.err = err.Error()
	}
	if result.Stop != nil {
		e.stop = result.Stop.Error()
	}
	for at, logs := range result.History.Rows() {
		e.rows += fmt.Sprintln(counts(at), read(logs))
	}
	return e, err
}

// comesAt returns an error at one batch.
func comesAt(place int, err error) func(int) error {
	return func(batch int) error {
		if batch == place {
			return err
		}
		return nil
	}
}

// An error or a wish to stop at the j-th step of a block of m, for each j and m up to 20, ends the run as without
// blocks.
func TestBlocks_errorInEachPlace(t *testing.T) {
	boom := errors.New("boom")
	type place struct{ j, m int }
	seen := map[place]int{}
	for _, what := range []error{boom, loop.ErrStop} {
		for size := 2; size <= 20; size++ {
			for k := range 2*size + 32 {
				synctest.Test(t, func(t *testing.T) {
					var sizes []int
					a := adder{size: size, log: "sum", sizes: &sizes, comes: comesAt(k, what)}
					data := func(context.CancelCauseFunc) loop.Data[int] { return numbers(100) }
					want, _ := endOf(t, a.alone(), data)
					got, err := endOf(t, a, data)
					require.Equal(t, want, got)
					if what == boom {
						require.ErrorIs(t, err, boom)
						require.EqualError(t, err, fmt.Sprintf("loop: step %d: each step: adder: boom", k+1))
						require.Equal(t, k*(k-1)/2, got.state)
					}
					last := len(sizes) - 1
					for _, n := range sizes[:last] {
						k -= n
					}
					seen[place{k + 1, sizes[last]}]++
				})
			}
		}
	}
	for m := 1; m <= 20; m++ {
		for j := 1; j <= m; j++ {
			require.Positive(t, seen[place{j, m}], "no error in step %d of a block of %d", j, m)
		}
	}
	t.Logf("%d places in blocks, 0 differences", len(seen))
}

// The data fails, ends or is cancelled while batches wait; in some runs a step before had asked to stop, and so the
// data would not have been asked without blocks.
func TestBlocks_dataFailsBehindABlock(t *testing.T) {
	boom, home := errors.New("boom"), errors.New("the user went home")
	for what, does := range map[string]func(cancel context.CancelCauseFunc, yield func(int, error) bool){
		"end":             func(context.CancelCauseFunc, func(int, error) bool) {},
		"error":           func(_ context.CancelCauseFunc, yield func(int, error) bool) { yield(0, boom) },
		"panic":           func(context.CancelCauseFunc, func(int, error) bool) { panic(boom) },
		"cancel":          func(cancel context.CancelCauseFunc, yield func(int, error) bool) { cancel(home); yield(99, nil) },
		"cancel and end":  func(cancel context.CancelCauseFunc, _ func(int, error) bool) { cancel(home) },
		"cancel and fail": func(cancel context.CancelCauseFunc, yield func(int, error) bool) { cancel(home); yield(0, boom) },
	} {
		t.Run(what, func(t *testing.T) {
			cut := 0
			for k := range 24 {
				for _, comes := range []func(int) error{nil, comesAt(k-1, loop.ErrStop), comesAt(k-2, loop.ErrStop), comesAt(k-1, boom)} {
					synctest.Test(t, func(t *testing.T) {
						data := func(cancel context.CancelCauseFunc) loop.Data[int] {
							return func(yield func(int, error) bool) {
								for i := range numbers(k) {
									if !yield(i, nil) {
										return
									}
								}
								does(cancel, yield)
							}
						}
						var sizes []int
						a := adder{size: 8, log: "sum", comes: comes, sizes: &sizes}
						want, _ := endOf(t, a.alone(), data)
						got, _ := endOf(t, a, data)
						require.Equal(t, want, got, "at batch %d", k)
						if comes == nil && what == "error" {
							require.Equal(t, fmt.Sprintf("loop: step %d: data: boom", k+1), got.err)
						}
						if last := len(sizes) - 1; last >= 0 && sizes[last] < []int{1, 2, 4, 8, 8, 2}[last] {
							cut++ // batches were waiting
						}
					})
				}
			}
			require.Greater(t, cut, 20)
			t.Logf("in %d runs batches were waiting", cut)
		})
	}
}

// A task before a block asks to stop. The run finishes its iteration with the step, the later tasks and the callbacks,
// and returns the first request.
func TestBlocks_stopInFront(t *testing.T) {
	boom := errors.New("boom")
	for _, row := range []struct {
		name         string
		comes        error // over the later step
		reason       loop.Reason
		state, after int
		watched      int64
	}{
		{name: "the step goes well", reason: loop.Stopped, state: 45, after: 1, watched: 10},
		{name: "the step stops too", comes: loop.ErrStop, reason: loop.Stopped, state: 45, after: 1, watched: 10},
		{name: "the step fails", comes: boom, reason: loop.Failed, state: 36},
	} {
		for _, blocks := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, blocks %t", row.name, blocks), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a := adder{size: 8, comes: comesAt(9, row.comes)}
					step := loop.Stepper[int, int](a)
					if !blocks {
						step = a.alone()
					}
					ten := loop.At(loop.Steps(10))
					after, watched := 0, int64(0)
					l := loop.New(
						loop.On(ten, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s, loop.Logs{}, loop.ErrStop })).Named("first"),
						loop.On(loop.EachStep, step).Named("step"),
						loop.On(ten, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { after++; return s, loop.Logs{}, nil })))
					result, err := l.Run(t.Context(), 0, numbers(30), loop.Watch(ten, func(_ context.Context, r loop.Report) error {
						watched = r.Elapsed.Steps
						return nil
					}))
					require.Equal(t, row.reason, result.Reason)
					if row.reason == loop.Failed {
						require.EqualError(t, err, "loop: step 10: each step: step: boom")
					} else {
						require.NoError(t, err)
						require.EqualError(t, result.Stop, "loop: step 10: at 10 steps: first: stop")
					}
					require.Equal(t, row.state, result.State)
					require.EqualValues(t, 10, result.Elapsed.Steps, "the first task had its turn")
					require.Equal(t, row.after, after)
					require.Equal(t, row.watched, watched)
				})
			})
		}
	}
}

type sizedBatch int

func (b sizedBatch) Samples() int { return int(b) }

func TestBlocks_negativeBatchBehindABlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := func(yield func(sizedBatch, error) bool) {
			for _, b := range []sizedBatch{1, 2, 3, 4, 5, -1, 6} {
				if !yield(b, nil) {
					return
				}
			}
		}
		made := 0
		result, err := loop.New(loop.On[int, sizedBatch](loop.EachStep, counter{&made})).Run(t.Context(), 0, loop.Data[sizedBatch](data))
		require.EqualError(t, err, "loop: step 6: data: a batch must not have a negative number of samples, got -1")
		require.Equal(t, 5, made, "the batches before it are not lost")
		require.Equal(t, loop.Elapsed{Steps: 5, Samples: 15}, counts(result.Elapsed))
		require.Equal(t, 15, result.State)
	})
}

type counter struct{ made *int }

func (counter) BlockSize() int { return 8 }

func (counter) Step(context.Context, int, sizedBatch) (int, loop.Logs, error) {
	return 0, loop.Logs{}, errors.New("not asked for")
}

func (c counter) StepBlock(_ context.Context, sum int, batches []sizedBatch) (int, []loop.Logs, error) {
	for _, b := range batches {
		sum += int(b)
	}
	*c.made += len(batches)
	return sum, make([]loop.Logs, len(batches)), nil
}

// blockFunc is a block stepper that computes the result of a block by a function.
type blockFunc func(sum int, batches []int) (int, []loop.Logs, error)

func (blockFunc) BlockSize() int { return 8 }

func (blockFunc) Step(context.Context, int, int) (int, loop.Logs, error) {
	return 0, loop.Logs{}, errors.New("step was called although there are blocks")
}

func (f blockFunc) StepBlock(_ context.Context, sum int, batches []int) (int, []loop.Logs, error) {
	return f(sum, batches)
}

// A step that breaks the contract of StepBlock is an error. The state is the one before its block.
func TestBlocks_brokenPromises(t *testing.T) {
	boom := errors.New("boom")
	each, ten := loop.EachStep, loop.Every(loop.Steps(10))
	logs := func(n int) []loop.Logs { return make([]loop.Logs, n) }
	fourth := func(f blockFunc) blockFunc { // in the block of 4 batches, which has steps 4 to 7
		return func(sum int, batches []int) (int, []loop.Logs, error) {
			if len(batches) == 4 {
				return f(-1, batches)
			}
			return sum + len(batches), logs(len(batches)), nil
		}
	}
	for _, row := range []struct {
		name    string
		step    blockFunc
		when    loop.Schedule
		front   bool // another task changes the state in front of each block
		options []loop.Option
		reason  loop.Reason
		state   int
		steps   int64
		err     string
	}{
		{name: "too few logs", when: each, step: fourth(func(s int, b []int) (int, []loop.Logs, error) { return s, logs(3), nil }),
			reason: loop.Failed, state: 3, steps: 3, err: "loop: step 4: each step: a block of 4 batches must return logs for each, got 3"},
		{name: "no logs", when: each, step: fourth(func(s int, b []int) (int, []loop.Logs, error) { return s, nil, nil }),
			reason: loop.Failed, state: 3, steps: 3, err: "loop: step 4: each step: a block of 4 batches must return logs for each, got 0"},
		{name: "too many logs", when: each, step: fourth(func(s int, b []int) (int, []loop.Logs, error) { return s, logs(5), nil }),
			reason: loop.Failed, state: 3, steps: 3, err: "loop: step 4: each step: a block of 4 batches must return logs for each, got 5"},
		{name: "too many logs beside an error", when: each, step: fourth(func(s int, b []int) (int, []loop.Logs, error) { return s, logs(5), boom }),
			reason: loop.Failed, state: 3, steps: 3, err: "loop: step 4: each step: boom; and a block of 4 batches must return logs for each, got 5"},
		{name: "too many logs beside a stop", when: each, step: fourth(func(s int, b []int) (int, []loop.Logs, error) { return s, logs(5), loop.ErrStop }),
			reason: loop.Failed, state: 3, steps: 3, err: "loop: step 4: each step: a block of 4 batches must return logs for each, got 5"},
		{name: "no logs at the start", when: loop.AtStart, step: func(s int, b []int) (int, []loop.Logs, error) { return s + 9, nil, nil },
			reason: loop.Failed, err: "loop: step 0: at start: a block of 1 batch must return logs for it, got 0"},
		{name: "a panic", when: each, step: fourth(func(int, []int) (int, []loop.Logs, error) { panic(boom) }),
			reason: loop.Failed, state: 3, steps: 3, err: "loop: step 4: each step: panic: boom"},
		{name: "a panic behind a task that changed the state", when: each, front: true, step: func(s int, b []int) (int, []loop.Logs, error) { panic(boom) },
			reason: loop.Failed, state: 100, steps: 1, err: "loop: step 1: each step: panic: boom"},
		{name: "a stop before the first step", when: each, step: fourth(func(s int, b []int) (int, []loop.Logs, error) { return 3, nil, loop.ErrStop }),
			reason: loop.Stopped, state: 3, steps: 3},
		{name: "a stop before the first step behind a task that changed the state", when: each, front: true,
			step: func(s int, b []int) (int, []loop.Logs, error) { return s, nil, loop.ErrStop }, reason: loop.Stopped, state: 100, steps: 1},
		{name: "an entry that is watched is logged in some steps only", when: each, options: []loop.Option{loop.WatchEntry("late", quiet)},
			step: func(s int, b []int) (int, []loop.Logs, error) {
				all := logs(len(b))
				for i := range all {
					if b[i] == 5 {
						all[i] = metric("late", 1)
					}
				}
				return s + len(b), all, nil
			}, front: true, reason: loop.Failed, state: 107, steps: 7,
			err: "loop: step 6: each step: late is logged in some steps only: StepBlock must log the same names in each"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tasks := []loop.Task[int, int]{loop.On[int, int](row.when, row.step)}
				if row.front {
					first := loop.When("first", func(before, _ loop.Elapsed) bool { return before.Steps == 0 })
					tasks = slices.Insert(tasks, 0, loop.On(first, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) { return s + 100, loop.Logs{}, nil })),
						loop.On(ten, loop.StepFunc(evaluation)))
				}
				result, err := loop.New(tasks...).Run(t.Context(), 0, numbers(20), row.options...)
				require.Equal(t, row.reason, result.Reason)
				if row.err == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, row.err)
				}
				require.Equal(t, row.state, result.State)
				require.Equal(t, row.steps, result.Elapsed.Steps)
			})
		})
	}
}

type summer struct{ blocks []int }

func (s *summer) BlockSize() int { return 100 }

func (s *summer) Step(ctx context.Context, sum int, batch []int) (int, loop.Logs, error) {
	sum, logs, err := s.StepBlock(ctx, sum, [][]int{batch})
	return sum, logs[0], err
}

func (s *summer) StepBlock(_ context.Context, sum int, batches [][]int) (int, []loop.Logs, error) {
	s.blocks = append(s.blocks, len(batches))
	for _, b := range batches {
		sum += b[0]
	}
	return sum, make([]loop.Logs, len(batches)), nil
}

// A source that writes into the memory of an earlier batch gets single steps. If that batch still waits, the run ends
// with an error before its step.
func TestStepBlock_aSourceThatReusesItsMemory(t *testing.T) {
	run := func(t *testing.T, value func(i int) int) (loop.Result[int], *summer, error) {
		batch, step := make([]int, 1), &summer{}
		source := loop.Data[[]int](func(yield func([]int, error) bool) {
			for i := range 20 {
				if batch[0] = value(i); !yield(batch, nil) {
					return
				}
			}
		})
		result, err := loop.New(loop.On[int, []int](loop.EachStep, step)).Run(t.Context(), 0, source)
		return result, step, err
	}
	synctest.Test(t, func(t *testing.T) {
		result, step, err := run(t, func(i int) int { return i })
		require.NoError(t, err)
		require.Equal(t, 190, result.State)
		require.Equal(t, slices.Repeat([]int{1}, 20), step.blocks)

		result, step, err = run(t, func(int) int { return 1 })
		require.NoError(t, err)
		require.Equal(t, 20, result.State)
		require.Equal(t, []int{1, 2, 4, 8, 5}, step.blocks, "a constant batch may wait")

		result, step, err = run(t, func(i int) int { return i / 6 })
		require.EqualError(t, err, "loop: step 4: data: the source has written into batch 4, whose step waits: give each batch its own memory, or the run the option SingleSteps")
		require.EqualValues(t, 3, result.Elapsed.Steps)
		require.Zero(t, result.State, "no step is made on a batch that was written over")
		require.Equal(t, []int{1, 2}, step.blocks)
	})
}
