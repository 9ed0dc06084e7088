package loop_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// weight is a state that changes in place.
type weight struct {
	mu     sync.Mutex // for reads that nothing orders
	value  int
	onRead []*func() error
	job    loop.Job
}

func (w *weight) Job() loop.Job { return w.job }

func (w *weight) OnRead(f func() error) (remove func(), err error) {
	if err := w.ready(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onRead = append(slices.Clip(w.onRead), &f)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.onRead = slices.DeleteFunc(slices.Clone(w.onRead), func(x *func() error) bool { return x == &f })
	}, nil
}

func (w *weight) ready() error {
	w.mu.Lock()
	list := w.onRead
	w.mu.Unlock()
	for _, f := range list {
		if err := (*f)(); err != nil {
			return err
		}
	}
	return nil
}

// read is the value after all steps whose batches have been handed out.
func (w *weight) read() (int, error) {
	if err := w.ready(); err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.value, nil
}

func (w *weight) add(x int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.value += x
}

// learner makes the steps of a weight: a batch is added to it.
type learner struct {
	block int
	comes func(batch int) error // the fault of a batch
	sizes *[]int                // of the blocks
}

func (l learner) BlockSize() int { return l.block }

func (l learner) Step(_ context.Context, w *weight, batch int) (*weight, loop.Logs, error) {
	if l.comes != nil {
		if err := l.comes(batch); err != nil && !errors.Is(err, loop.ErrStop) {
			return w, loop.Logs{}, err
		} else if err != nil {
			w.add(batch)
			return w, metric("w", float64(w.value)), err
		}
	}
	w.add(batch)
	return w, metric("w", float64(w.value)), nil
}

func (l learner) StepBlock(ctx context.Context, w *weight, batches []int) (*weight, []loop.Logs, error) {
	if l.sizes != nil {
		*l.sizes = append(*l.sizes, len(batches))
	}
	return stepEach(ctx, l.Step, w, batches)
}

// single is the learner without blocks.
func (l learner) single() loop.Stepper[*weight, int] {
	return loop.StepFunc[*weight, int](l.Step)
}

// weightsSeen are those that the data saw before each of n batches of 1, where read reads.
func weightsSeen(t *testing.T, n int, read func(*weight) (int, error), options ...loop.Option) (seen, sizes []int) {
	w := &weight{}
	data := func(yield func(int, error) bool) {
		for range n {
			v, err := read(w)
			if seen = append(seen, v); !yield(1, err) || err != nil {
				return
			}
		}
	}
	result, err := loop.New(loop.On[*weight, int](loop.EachStep, learner{block: 8, sizes: &sizes})).Run(t.Context(), w, loop.Data[int](data), options...)
	require.NoError(t, err)
	require.Equal(t, n, result.State.value)
	require.Empty(t, w.onRead)
	return seen, sizes
}

func TestS03_dataSeesEachStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen, sizes := weightsSeen(t, 10, (*weight).read)
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, seen)
		require.Equal(t, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, sizes)
	})
	t.Run("control: a state that calls nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			seen, sizes := weightsSeen(t, 10, func(w *weight) (int, error) { return w.value, nil })
			require.Equal(t, []int{0, 1, 1, 3, 3, 3, 3, 7, 7, 7}, seen)
			require.Equal(t, []int{1, 2, 4, 3}, sizes)
		})
	})
	t.Run("single steps", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			seen, sizes := weightsSeen(t, 5, func(w *weight) (int, error) { return w.value, nil }, loop.SingleSteps())
			require.Equal(t, []int{0, 1, 2, 3, 4}, seen)
			require.Equal(t, []int{1, 1, 1, 1, 1}, sizes, "they are made by StepBlock, so that they compute the same")
			plan, err := loop.New(loop.On[*weight, int](loop.EachStep, learner{block: 8})).Plan(loop.SingleSteps())
			require.NoError(t, err)
			require.NotContains(t, plan.String(), "blocks")
		})
	})
}

// reader is a run whose data, tasks and callbacks read the state: all that they see.
type reader struct {
	learner
	n, every, after int // batches; the data reads before each every-th batch, and a task is due every after steps
	options         func(r *reader) []loop.Option
	seen            []string
	sizes           []int
}

func (r *reader) see(format string, args ...any) {
	r.seen = append(r.seen, fmt.Sprintf(format, args...))
}

func (r *reader) data(w *weight) loop.Data[int] {
	return func(yield func(int, error) bool) {
		defer r.see("data closed")
		for i := range r.n {
			batch := i
			if i%r.every == 0 {
				v, err := w.read()
				if err != nil {
					return
				}
				batch += v % 7
				r.see("batch %d of %d", batch, v)
			}
			if !yield(batch, nil) {
				return
			}
		}
	}
}

func (r *reader) run(t require.TestingT, blocks bool) {
	w, step := &weight{}, r.single()
	if r.learner.sizes = &r.sizes; blocks {
		step = r.learner
	}
	look := func(what string) func(context.Context, loop.Report) error {
		return func(_ context.Context, report loop.Report) error {
			v, err := w.read()
			r.see("%s at %d: %d %v", what, report.Elapsed.Steps, v, err)
			return nil
		}
	}
	task := loop.OnTurn(loop.Every(loop.Steps(int64(r.after))), func(_ context.Context, turn *loop.Turn[*weight, int]) error {
		v, err := w.read()
		r.see("task at %d: %d %v", turn.Elapsed.Steps, v, err)
		return nil
	})
	options := []loop.Option{loop.Watch(loop.Every(loop.Steps(int64(r.after+2))), look("callback")), attend("", loop.Never, func() loop.Attendant { return lookAtEnd{look("end")} })}
	if r.options != nil {
		options = append(options, r.options(r)...)
	}
	result, err := loop.New(loop.On(loop.EachStep, step).Named("step"), task).Run(context.Background(), w, r.data(w), options...)
	r.see("%d, %v, %s, %v, %v", result.State.value, counts(result.Elapsed), result.Reason, result.Stop, err)
	for at, logs := range result.History.Rows() {
		r.see("%v %v", counts(at), read(logs))
	}
}

type lookAtEnd struct {
	look func(context.Context, loop.Report) error
}

func (lookAtEnd) Watch(context.Context, loop.Report) error { return nil }
func (l lookAtEnd) End(ctx context.Context, e loop.Ending) error {
	return l.look(ctx, e.Report)
}

// readBeside reads on another goroutine.
func (w *weight) readBeside() (v int, err error) {
	done := make(chan struct{})
	go func() { defer close(done); v, err = w.read() }()
	<-done
	return v, err
}

// Whichever goroutine reads the state while the source has control, sees each step whose batch was handed out.
func TestS03_anyGoroutineSeesEachStep(t *testing.T) {
	for _, row := range []struct {
		name string
		read func(t *testing.T) (read func(*weight) (int, error), end func())
	}{
		{"one that was there before the run", func(t *testing.T) (func(*weight) (int, error), func()) {
			asks, answers := make(chan *weight), make(chan int)
			go func() {
				for w := range asks {
					v, err := w.read()
					if err != nil {
						v = -1
					}
					answers <- v
				}
			}()
			return func(w *weight) (int, error) { asks <- w; return <-answers, nil }, func() { close(asks) }
		}},
		{"several at once", func(t *testing.T) (func(*weight) (int, error), func()) {
			return func(w *weight) (int, error) {
				var all [8]int
				var group sync.WaitGroup
				for i := range all {
					group.Go(func() { all[i], _ = w.read() })
				}
				group.Wait()
				if slices.Min(all[:]) != slices.Max(all[:]) {
					return 0, fmt.Errorf("seen at once: %v", all)
				}
				return all[0], nil
			}, func() {}
		}},
		{"iter.Pull", func(t *testing.T) (func(*weight) (int, error), func()) {
			return func(w *weight) (int, error) {
				next, stop := iter.Pull2(func(yield func(int, error) bool) { yield(w.read()) })
				defer stop()
				v, err, _ := next()
				return v, err
			}, func() {}
		}},
		{"an evaluation", func(t *testing.T) (func(*weight) (int, error), func()) {
			return func(w *weight) (v int, err error) {
				look := loop.StepFunc[*weight, int](func(_ context.Context, w *weight, _ int) (*weight, loop.Logs, error) {
					v, err = w.read()
					return w, loop.Logs{}, err
				})
				_, _, failed := loop.Evaluate[*weight, int]("test", look, numbers(1)).Run(t.Context(), w)
				return v, errors.Join(err, failed)
			}, func() {}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			for _, every := range []int{1, 5} {
				synctest.Test(t, func(t *testing.T) {
					read, end := row.read(t)
					defer end()
					made := -1
					seen, sizes := weightsSeen(t, 40, func(w *weight) (int, error) {
						if made++; made%every > 0 {
							return made, nil
						}
						return read(w)
					})
					want := make([]int, 40)
					for i := range want {
						want[i] = i
					}
					require.Equal(t, want, seen)
					require.Equal(t, every > 1, slices.Max(sizes) > 1, "batches waited")
				})
			}
		})
	}
}

func deep(n int, f func()) {
	if n > 0 {
		deep(n-1, f)
		return
	}
	f()
}

// If the steps cannot be made, a read is an error that names the remedy, but only if steps wait.
func TestS03_readsThatFindBatchesWaiting(t *testing.T) {
	t.Run("by what must not read", func(t *testing.T) {
		w, reads := &weight{}, []error{}
		ask := func() bool { _, err := w.read(); reads = append(reads, err); return false }
		asking := attend("asking", loop.Never, func() loop.Attendant { return asks{ask} })
		_, err := loop.New(loop.On[*weight, int](loop.EachStep, learner{block: 8})).Run(t.Context(), w, numbers(5), asking)
		require.NoError(t, err)
		require.ErrorContains(t, errors.Join(reads...), "loop: the state was read while batches wait for their steps, by never: asking, which must not read it: give the run the option SingleSteps")
	})
	t.Run("a job", func(t *testing.T) {
		for i, option := range []loop.Option{nil, nil, loop.SingleSteps(), loop.SingleSteps()} {
			read := []func(*weight) (int, error){(*weight).read, (*weight).readBeside}[i%2]
			synctest.Test(t, func(t *testing.T) {
				all := together(2, func(_ int, s member) (loop.Result[member], error) {
					w := &weight{job: s.job}
					data := func(yield func(int, error) bool) {
						for range 5 {
							if _, err := read(w); !yield(1, err) || err != nil {
								return
							}
						}
					}
					result, err := loop.New(loop.On[*weight, int](loop.EachStep, learner{block: 8})).Run(t.Context(), w, loop.Data[int](data), option)
					return loop.Result[member]{Reason: result.Reason, Elapsed: result.Elapsed}, err
				})
				for _, e := range all {
					if option != nil {
						require.NoError(t, e.err)
						require.EqualValues(t, 5, e.Elapsed.Steps)
						continue
					}
					require.ErrorContains(t, e.err, "the state was read while batches wait for their steps, which the processes of a job make only together: give the run the option SingleSteps")
					require.EqualValues(t, 3, e.Elapsed.Steps, "the step that waited is made")
				}
			})
		}
	})
}
