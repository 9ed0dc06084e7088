package managed

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/metrics"
)

type reset struct {
	variable *model.Variable
	to       metrics.Accumulator
}

func filled(a metrics.Accumulator) (*tensors.Tensor, error) {
	t := tensors.FromShape(a.Shape)
	if a.Initial == 0 {
		return t, nil
	}
	var err error
	outer := t.MutableFlatData(func(flat any) {
		switch flat := flat.(type) {
		case []float64:
			for i := range flat {
				flat[i] = a.Initial
			}
		case []float32:
			for i := range flat {
				flat[i] = float32(a.Initial)
			}
		case []int64:
			for i := range flat {
				flat[i] = int64(a.Initial)
			}
		case []int32:
			for i := range flat {
				flat[i] = int32(a.Initial)
			}
		default:
			err = fmt.Errorf("it is %s, expected %s, %s, %s or %s", a.Shape, dtypes.Float64, dtypes.Float32, dtypes.Int64, dtypes.Int32)
		}
	})
	return t, errors.Join(outer, err)
}

// Reset clears the metrics of [Builder.Track] in all steps, as at the start of an epoch, and returns the same state.
// Evaluations do not need it: see [Stepper.BeginEvaluation].
func Reset(ctx context.Context, state *State) (*State, error) {
	if err := state.resetMetrics(ctx); err != nil {
		return state, fmt.Errorf("managed: reset metrics: %w", err)
	}
	return state, nil
}

func (s *State) resetMetrics(ctx context.Context) error {
	if s == nil {
		return errors.New("the state is nil: make one with New")
	}
	done, err := s.values.Change(ctx)
	if err != nil {
		return err
	}
	defer done()
	for v, to := range s.model.resets {
		at := s.values.Place(v)
		if at < 0 {
			continue
		}
		t, err := filled(to)
		if err == nil {
			err = s.values.Set(at, t)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", v.Path(), err)
		}
	}
	return nil
}
