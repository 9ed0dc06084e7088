package loop_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// lasting is a stepper whose steps go on when they have returned.
type lasting struct {
	*adder
	await  func() error
	states *[]int // the arguments of Await
}

func (l lasting) Await(ctx context.Context, sum int) error {
	*l.states = append(*l.states, sum)
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.await()
}

func TestAwaiter(t *testing.T) {
	broken := errors.New("the device is gone")
	fine := func() error { return nil }
	cancelled := errors.New("enough")
	for _, row := range []struct {
		name    string
		await   func() error
		step    error // at the batch 5
		cancel  bool
		until   loop.Steps
		reason  loop.Reason
		states  []int
		err     string
		matches []error
	}{
		{name: "well", await: fine, reason: loop.DataEnded, states: []int{45}},
		{name: "until", await: fine, until: 3, reason: loop.UntilReached, states: []int{3}},
		{name: "it failed late", await: func() error { return broken }, reason: loop.Failed, states: []int{45},
			err: "loop: step 10: each step: the device is gone", matches: []error{broken}},
		{name: "it panics", await: func() error { panic(broken) }, reason: loop.Failed, states: []int{45}, matches: []error{broken}},
		{name: "a step fails, the ones before are waited for", await: fine, step: errors.New("bad batch"), reason: loop.Failed, states: []int{10},
			err: "loop: step 6: each step: bad batch"},
		{name: "a step fails, and one before failed too", await: func() error { return broken }, step: cancelled, reason: loop.Failed, states: []int{10},
			matches: []error{broken, cancelled}},
		{name: "a stop", await: fine, step: loop.ErrStop, reason: loop.Stopped, states: []int{15}},
		{name: "cancelled: Await is not", await: fine, cancel: true, reason: loop.Cancelled, states: []int{45}, matches: []error{cancelled}},
	} {
		for _, size := range []int{1, 4} {
			t.Run(row.name, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				var states []int
				stepper := lasting{await: row.await, states: &states, adder: &adder{size: size, comes: func(batch int) error {
					if row.cancel && batch == 9 {
						cancel(cancelled)
					}
					if batch == 5 {
						return row.step
					}
					return nil
				}}}
				options := []loop.Option{}
				if row.until > 0 {
					options = append(options, loop.Until(row.until))
				}
				n := 10
				if row.cancel {
					n = 100
				}
				result, err := loop.New(loop.On[int, int](loop.EachStep, stepper)).Run(ctx, 0, numbers(n), options...)
				require.Equal(t, row.reason, result.Reason)
				if row.err != "" {
					require.EqualError(t, err, row.err)
				}
				if row.err == "" && row.matches == nil {
					require.NoError(t, err)
				}
				for _, m := range row.matches {
					require.ErrorIs(t, err, m)
				}
				if !row.cancel || size == 1 {
					require.Equal(t, row.states, states)
				}
				require.Len(t, states, 1)
			})
		}
	}
}
