package loop_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// finished is the outcome of the run of one member.
type finished struct {
	loop.Result[member]
	err error
}

// together runs a function for each of n members at once.
func together(n int, run func(rank int, s member) (loop.Result[member], error)) []finished {
	m, all := newMeeting(n), make([]finished, n)
	var group sync.WaitGroup
	for rank := range all {
		group.Go(func() {
			result, err := run(rank, member{0, oneOf{m, rank}})
			all[rank] = finished{result, err}
		})
	}
	group.Wait()
	return all
}

func memberAdd(_ context.Context, s member, n int) (member, loop.Logs, error) {
	s.value += uint64(n)
	var logs loop.Logs
	logs.Metric("n", float64(n))
	return s, logs, nil
}

var memberLoop = loop.New(loop.On(loop.EachStep, loop.StepFunc(memberAdd)))

// Two concurrent runs would meet in a different order in each process. The second is refused; a run within the first is
// not.
func TestJob_twoRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var second error
		all := together(2, func(rank int, s member) (loop.Result[member], error) {
			return memberLoop.Run(t.Context(), s, numbers(10), loop.Until(loop.Steps(6)), loop.Watch(loop.At(loop.Steps(3)), func(ctx context.Context, _ loop.Report) error {
				if _, err := memberLoop.Run(ctx, s, numbers(3)); err != nil {
					return err
				}
				if rank == 0 {
					_, second = memberLoop.Run(t.Context(), s, numbers(3))
				}
				return nil
			}))
		})
		for _, e := range all {
			require.NoError(t, e.err)
			require.Equal(t, int64(6), e.Elapsed.Steps)
		}
		require.ErrorContains(t, second, "loop: rank 0 already makes another run on this job")
		again := together(2, func(_ int, s member) (loop.Result[member], error) { return memberLoop.Run(t.Context(), s, numbers(3)) })
		require.NoError(t, errors.Join(again[0].err, again[1].err), "behind the others")
	})
}

type endsWith struct{ err error }

func (endsWith) Watch(context.Context, loop.Report) error { return nil }
func (e endsWith) End(context.Context, loop.Ending) error { return e.err }

// A signal in one process ends the runs of all at one border, with its exit code, even in the midst of an evaluation.
func TestJob_signal(t *testing.T) {
	for _, within := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			all := together(3, func(rank int, s member) (loop.Result[member], error) {
				ctx, cancel := context.WithCancelCause(t.Context())
				steps := 0
				counted := func(c context.Context, s member, n int) (member, loop.Logs, error) {
					if steps++; steps == 4 && rank == 1 {
						cancel(&loop.SignalError{Signal: syscall.SIGTERM})
						require.NoError(t, c.Err(), "a step is not broken off")
					}
					return memberAdd(c, s, n)
				}
				l := loop.New(loop.On(loop.EachStep, loop.StepFunc(counted)))
				if within {
					test := loop.Evaluation[member, int]{Name: "test", Loop: l, Data: numbers(3)}
					l = loop.New(test.On(loop.EachStep))
				}
				return l.Run(ctx, s, numbers(100))
			})
			for rank, e := range all {
				require.Equal(t, loop.Cancelled, e.Reason, "%d: %v", rank, e.err)
				require.Equal(t, all[0].Elapsed, e.Elapsed)
				require.Equal(t, 143, loop.ExitCode(e.err), "%v", e.err)
			}
			require.ErrorContains(t, all[0].err, "rank 1: cancelled: terminated")
		})
	}
}

// A source that blocks in one process does not hold the others once its run is cancelled.
func TestJob_sourceLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := make(chan struct{})
		all := together(2, func(rank int, s member) (loop.Result[member], error) {
			ctx, cancel := context.WithCancelCause(t.Context())
			return memberLoop.Run(ctx, s, loop.Data[int](func(yield func(int, error) bool) {
				for i := 0; rank == 0 || i < 3; i++ {
					if !yield(i, nil) {
						return
					}
				}
				cancel(errHome)
				<-back
			}))
		})
		close(back)
		require.ErrorContains(t, all[1].err, "loop: step 3: cancelled: the user went home; the data source did not return")
		require.ErrorIs(t, all[1].err, loop.ErrSourceLeft)
		require.EqualError(t, all[0].err, "loop: rank 1: cancelled: the user went home")
		require.Equal(t, loop.Cancelled, all[0].Reason)
		require.Equal(t, all[1].State.value, all[0].State.value)
	})
}

// A callback with AtRank0 is started and called in one process, in the iterations in which it would be due in one
// process.
func TestJob_atRank0(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		together(3, func(rank int, s member) (loop.Result[member], error) {
			c := loop.Watch(loop.Every(loop.Steps(4)).AndAtEnd(), func(_ context.Context, r loop.Report) error {
				seen = append(seen, fmt.Sprint(rank, " ", r.Elapsed.Steps))
				return nil
			})
			c.AtRank0 = true
			result, err := memberLoop.Run(t.Context(), s, numbers(10), c)
			require.NoError(t, err)
			return result, err
		})
		require.Equal(t, []string{"0 4", "0 8", "0 10"}, seen)
	})
}

// interrupts asks for a call after some time, in one process.
type interrupts struct {
	asks bool
	till time.Time
	err  error
}

func (i interrupts) Interrupts() bool                         { return i.asks && time.Now().After(i.till) }
func (i interrupts) Watch(context.Context, loop.Report) error { return i.err }
func (interrupts) End(context.Context, loop.Ending) error     { return nil }

// A failure in the background of one process ends all of them.
func TestJob_interrupter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := together(2, func(rank int, s member) (loop.Result[member], error) {
			slow := loop.On(loop.EachStep, loop.StepFunc(func(c context.Context, s member, n int) (member, loop.Logs, error) {
				time.Sleep(time.Second)
				return memberAdd(c, s, n)
			}))

			return loop.New(slow).Run(t.Context(), s, numbers(10), loop.Callback{Name: "save", Start: func(loop.Beginning) (loop.Attendant, error) {
				return interrupts{rank == 1, time.Now().Add(3500 * time.Millisecond), fs.ErrPermission}, nil
			}})
		})
		require.EqualError(t, all[1].err, "loop: step 5: save: permission denied")
		require.EqualError(t, all[0].err, "loop: rank 1: step 5: save: permission denied")
	})
}

// lost is a job that breaks.
type lost struct {
	oneOf
	left *int
}

func (l lost) Agree(words []int64) error {
	if *l.left--; *l.left < 0 {
		return errors.New("rank 1 is silent")
	}
	return l.oneOf.Agree(words)
}

func TestJob_lost(t *testing.T) {
	for n := range 12 {
		left := n
		result, err := memberLoop.Run(t.Context(), member{0, lost{oneOf{newMeeting(1), 0}, &left}}, numbers(3))
		require.NoError(t, err, "a job of one")
		require.EqualValues(t, 3, result.Elapsed.Steps)
		_, err = memberLoop.Run(t.Context(), member{0, two{lost{oneOf{newMeeting(1), 0}, &left}}}, numbers(3))
		if left < 0 {
			require.ErrorContains(t, err, "agreement with the other processes: rank 1 is silent")
			require.Equal(t, -1, left, "it is asked no more")
		} else {
			require.NoError(t, err)
		}
	}
}

// two is a job whose other process always agrees.
type two struct{ lost }

func (two) Size() int { return 2 }

// BenchmarkJobTurn is a turn of steps alone, of two members.
func BenchmarkJobTurn(b *testing.B) {
	together(2, func(_ int, s member) (loop.Result[member], error) {
		result, err := memberLoop.Run(b.Context(), s, loop.Data[int](forever), loop.Until(loop.Steps(b.N)), loop.Keep(loop.Never))
		if err != nil {
			b.Error(err)
		}
		return result, err
	})
}

type memberSums struct{}

func (memberSums) BlockSize() int { return 100 }

func (s memberSums) Step(ctx context.Context, m member, b []int) (member, loop.Logs, error) {
	m, logs, err := s.StepBlock(ctx, m, [][]int{b})
	return m, logs[0], err
}

func (memberSums) StepBlock(_ context.Context, m member, batches [][]int) (member, []loop.Logs, error) {
	for _, b := range batches {
		m.value += uint64(b[0])
	}
	return m, make([]loop.Logs, len(batches)), nil
}

// A source of one process that reuses its memory ends the run of all before a step on a batch that was written over.
func TestJob_aSourceThatReusesItsMemory(t *testing.T) {
	for name, row := range map[string]struct {
		value func(i int) int
		steps int64
		want  string
	}{
		"at once": {func(i int) int { return i }, 1, "the source has written into batch 1, and the blocks of all processes have equal lengths: give each batch its own memory"},
		"later":   {func(i int) int { return i / 6 }, 4, "the source has written into batch 5, whose step waits: give each batch its own memory"},
	} {
		synctest.Test(t, func(t *testing.T) {
			all := together(3, func(rank int, s member) (loop.Result[member], error) {
				memory := make([]int, 1)
				source := loop.Data[[]int](func(yield func([]int, error) bool) {
					for i := range 20 {
						batch := []int{row.value(i)}
						if rank == 1 {
							memory[0], batch = batch[0], memory
						}
						if !yield(batch, nil) {
							return
						}
					}
				})
				return loop.New(loop.On[member, []int](loop.EachStep, memberSums{})).Run(t.Context(), s, source)
			})
			var sum uint64
			for i := range row.steps {
				sum += uint64(row.value(int(i)))
			}
			for rank, e := range all {
				require.ErrorContains(t, e.err, row.want, "%s: rank %d", name, rank)
				require.Equal(t, row.steps, e.Elapsed.Steps, "%s: rank %d", name, rank)
				require.Equal(t, sum, e.State.value, "%s: rank %d", name, rank)
			}
		})
	}
}
