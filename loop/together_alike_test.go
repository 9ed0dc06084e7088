package loop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

func TestJob_messages(t *testing.T) {
	fails := func(when loop.Schedule, err error) loop.Option {
		return loop.Watch(when, func(context.Context, loop.Report) error { return err })
	}
	ends := func(err error) loop.Option {
		return attend("file", loop.Never, func() loop.Attendant { return endsWith{err} })
	}
	for _, row := range []struct {
		name        string
		option      func(rank int) loop.Option // with Until(Steps(6)), of each rank
		data        func(rank int) int         // how many batches
		own, others string
		steps       int64
		reason      loop.Reason
	}{
		{name: "a callback fails", option: func(rank int) loop.Option { return fails(loop.At(loop.Steps(3)), onRank(1, rank, errBoom)) },
			own: "loop: step 3: at 3 steps: boom", others: "loop: rank 1: step 3: at 3 steps: boom", steps: 3, reason: loop.Failed},
		{name: "a callback fails at the start of the run", option: func(rank int) loop.Option {
			return loop.Callback{When: loop.Never, Start: func(loop.Beginning) (loop.Attendant, error) { return endsWith{}, onRank(1, rank, errBoom) }}
		}, own: "loop: at the start: step 0: never: boom", others: "loop: rank 1: at the start: step 0: never: boom", reason: loop.Failed},
		{name: "a callback fails at its end", option: func(rank int) loop.Option { return ends(onRank(1, rank, errBoom)) },
			own: "loop: at the end: step 6: never: file: boom", others: "loop: rank 1: at the end: step 6: never: file: boom", steps: 6, reason: loop.Failed},
		{name: "an option is wrong", option: func(rank int) loop.Option {
			if rank == 1 {
				return loop.Until(loop.Steps(-1))
			}
			return nil
		}, own: "loop: until: period must be zero or positive, got -1 steps", others: "loop: rank 1: until: period must be zero or positive, got -1 steps", reason: loop.Failed},
		{name: "the schedules differ", option: func(rank int) loop.Option { return fails(loop.Every(loop.Steps(int64(2+rank))), nil) },
			own:    "the processes do not run the same loop: ranks 0 and 1 differ in callback 1: rank 1 has every 3 steps, rank 0 every 2 steps: give all ranks",
			others: "for work of only one rank, use a Callback with AtRank0", reason: loop.Failed},
		{name: "the ends differ", option: func(rank int) loop.Option { return loop.Until(loop.Steps(int64(6 + rank%2))) },
			own: "differ in Until: rank 1 has 7 steps, rank ", others: "differ in Until: rank 1 has 7 steps, rank ", reason: loop.Failed},
		{name: "the names differ in one", option: func(rank int) loop.Option {
			limit := loop.Watch(loop.At(loop.Time(time.Hour+time.Duration(rank%2)*time.Minute)), func(context.Context, loop.Report) error { return nil })
			limit.Name = "time limit"
			return loop.Options(fails(loop.Never, nil), limit)
		}, own: "differ in callback 2: rank 1 has at 1h1m0s: time limit, rank ", others: "differ in callback 2: rank 1 has at 1h1m0s: time limit, rank ", reason: loop.Failed},
		{name: "schedules that the texts lack", option: func(rank int) loop.Option {
			c := loop.WatchEntry("loss", func(context.Context, loop.Report) error { return nil })
			c.When = loop.Every(loop.Steps(int64(2 + rank%2)))
			return c
		}, own: "differ in callback 1: rank 1 has on each loss [callback every 3 steps loss false], rank 0 on each loss [callback every 2 steps loss false]", others: "differ in callback 1: rank ", reason: loop.Failed},
		{name: "one has a callback more", option: func(rank int) loop.Option {
			all := []loop.Option{}
			for range 8 + rank%2 {
				all = append(all, fails(loop.At(loop.Steps(3)), nil))
			}
			return loop.Options(all...)
		}, own: "differ in callback 9: rank 1 has at 3 steps, rank ", others: "none: give all ranks the same", reason: loop.Failed},
		{name: "a wish to stop", option: func(rank int) loop.Option { return fails(loop.At(loop.Steps(3)), onRank(1, rank, loop.ErrPause)) },
			steps: 3, reason: loop.Stopped},
		{name: "data that ends", data: func(rank int) int { return 5 - 3*rank },
			own:    "loop: step 2: data: the data of rank 1 ended after 2 batches, rank 2 has had 3: it must have the same number of batches in each process",
			others: "loop: step 2: data: the data of rank 1 ended after 2 batches, rank 2 has had 3: it must have the same number of batches in each process", steps: 2, reason: loop.Failed},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := together(3, func(rank int, s member) (loop.Result[member], error) {
					n := 10
					if row.data != nil {
						n = row.data(rank % 2)
					}
					var o loop.Option
					if row.option != nil {
						o = row.option(rank)
					}
					return memberLoop.Run(t.Context(), s, numbers(n), loop.Until(loop.Steps(6)), o)
				})
				for rank, e := range all {
					require.Equal(t, row.reason, e.Reason)
					require.Equal(t, row.steps, e.Elapsed.Steps)
					require.Equal(t, all[0].State.value, e.State.value)
					want := row.others
					if rank == 1 {
						want = row.own
					}
					if want == "" {
						require.NoError(t, e.err)
						require.ErrorIs(t, e.Stop, loop.ErrPause)
						continue
					}
					require.ErrorContains(t, e.err, want)
				}
			})
		})
	}
}

func onRank(which, rank int, err error) error {
	if rank == which {
		return err
	}
	return nil
}
