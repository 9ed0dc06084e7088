package loop_test

import (
	"context"
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
