package main

import (
	"context"
	"math/rand/v2"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
)

type agent struct {
	ctx   context.Context
	state *managed.State
	seed  uint64
}

// random depends only on a position in the data: checkpoints need not contain it.
func (a agent) random(position int64) *rand.Rand {
	return rand.New(rand.NewPCG(a.seed, uint64(position)))
}

func (a agent) look(step *managed.Stepper, poles []pole) ([]float32, error) {
	flat := make([]float32, 0, 4*len(poles))
	for _, p := range poles {
		flat = append(flat, p[:]...)
	}
	_, logs, err := step.Step(a.ctx, a.state, data.Batch{Fields: []data.Field{data.X(flat, len(poles), 4)}})
	if err != nil {
		return nil, err
	}
	out, err := managed.Array(logs, "out")
	if err != nil {
		return nil, err
	}
	return out.Flat.([]float32), nil
}
