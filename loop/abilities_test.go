package loop_test

import (
	"context"

	"github.com/lazo-ml/lazo/loop"
)

type longBatch struct{}

func (longBatch) Samples() int64 { return 32 }

type audioBatch struct{}

func (audioBatch) Samples() []float32 { return nil }

type unblocked struct{ loop.Stepper[int, int] }

func (unblocked) BlockSize() int { return 8 }

func (unblocked) StepBlock(context.Context, int, []int) (int, loop.Logs, error) {
	return 0, loop.Logs{}, nil
}
