package managed

import (
	"context"
	"errors"
	"fmt"
	"strings"

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

func (g *gathering) claimOf(c *compiled) int {
	claim := 0
	c.step.cache.each(func(o *compiled) {
		if o.state == c.state {
			claim = max(claim, o.claim)
		}
	})
	if claim == 0 {
		g.claims++
		claim = g.claims
	}
	return claim
}

// continues needs exclusive access to values.
func (g *gathering) continues(c *compiled) error {
	if c.claim == 0 || c.seen == g.changes && g.by != nil {
		return nil
	}
	for i, at := range c.values {
		if c.metrics[i] == nil || g.by[at] == c.claim {
			continue
		}
		if g.by[at] > c.claim {
			name := strings.Split(strings.TrimPrefix(c.state.values.Variable(at).Path(), "/metrics/"), "/")
			return fmt.Errorf("metric %q of the state also has the numbers of another step, which ran after this one, and would mix both: "+
				"give the metrics of each step their own names, make one step of both, or call managed.Reset in between",
				strings.Join(name[1:len(name)-1], "/"))
		}
		if g.by == nil {
			g.by = map[int]int{}
		}
		g.by[at] = c.claim
		g.changes++
	}
	c.seen = g.changes
	return nil
}

// Reset clears the metrics of [Builder.Track] in all steps and returns the same state. Evaluations do not need it.
func Reset(ctx context.Context, state *State) (*State, error) {
	if err := state.resetMetrics(ctx); err != nil {
		return state, fmt.Errorf("managed: reset metrics: %w", err)
	}
	return state, nil
}

func (s *State) resetMetrics(ctx context.Context) error {
	if s == nil {
		return errNoState
	}
	done, err := s.values.Change(ctx)
	if err != nil {
		return err
	}
	defer done()
	s.gathering.by = nil
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
