package callbacks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

// ReduceOnPlateau multiplies the state's learning rate by a factor between 0 and 1 when an entry had no better value
// for the patience, which then restarts. A state without a learning rate ([loop.Stepper]) is an error.
func ReduceOnPlateau(entry string, factor float64, patience Patience, settings ...Monitor) loop.Callback {
	settings = slices.Clone(settings)
	return changeByValue("reduce on plateau", entry, func() (*plateau, error) { return newPlateau(entry, factor, patience, settings) })
}

// lowestRate is the smallest normal float32; smaller ones lose precision.
const lowestRate = 0x1p-126

type plateau struct {
	noEnd
	monitor
	factor   float64
	patience Patience
	cut      loop.Elapsed
	afterCut int64
	cools    bool
	unknown  bool // some optimizers have no rate before the first step
}

func newPlateau(entry string, factor float64, patience Patience, settings []Monitor) (*plateau, error) {
	errs := []error{checkPatience(patience)}
	if !(factor > 0 && factor < 1) {
		errs = append(errs, fmt.Errorf("factor must lie between 0 and 1, got %g", factor))
	}
	m, err := newPlateauMonitor(entry, settings)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return &plateau{monitor: m, factor: factor, patience: patience}, nil
}

func (p *plateau) Watch(ctx context.Context, r loop.Report) error {
	v, err := p.read(r)
	if err != nil {
		return err
	}
	if p.unknown {
		if state, ok := abilities.StateAs[abilities.LearningRater](r); ok {
			if err := p.belowMinRate(state); err != nil {
				return err
			}
		}
	}
	if !p.due(r.Elapsed, v) {
		return nil
	}
	state, ok := abilities.StateAs[abilities.LearningRater](r)
	if !ok {
		return noRater(r.State())
	}
	old, err := state.LearningRate()
	if err != nil {
		return fmt.Errorf("learning rate: %w", err)
	}
	lowest := max(p.MinRate, lowestRate)
	if !(old > lowest) {
		return nil
	}
	rate := max(old*p.factor, lowest)
	if err := state.SetLearningRate(rate); errors.Is(err, abilities.ErrRateTooSmall) {
		return nil
	} else if err != nil {
		return fmt.Errorf("learning rate %g: %w", rate, err)
	}
	if now, err := state.LearningRate(); err != nil {
		return fmt.Errorf("learning rate: %w", err)
	} else if now == old { // the dtype cannot represent a lower rate
		return nil
	}
	p.reduced(r.Elapsed)
	if p.OnReduce == nil {
		return nil
	}
	return p.OnReduce(ctx, r, old, rate)
}

func (p *plateau) due(at loop.Elapsed, v float64) bool {
	p.see(at, v)
	if p.cools {
		p.afterCut++
		if passed, cooldown, _ := measure(p.Cooldown, at.Since(p.cut), p.afterCut); passed <= cooldown {
			p.wait(at)
			return false
		}
	}
	return p.patienceOver(p.patience, at)
}

func (p *plateau) reduced(at loop.Elapsed) {
	p.wait(at)
	p.cut, p.afterCut, p.cools = at, 0, p.Cooldown != nil
}

func (p *plateau) resume(from loop.Beginning) error {
	p.replay(from, func(at loop.Elapsed, v float64) {
		if p.due(at, v) {
			p.reduced(at)
		}
	})
	state, ok := abilities.StateAs[abilities.LearningRater](from)
	switch {
	case ok:
		return p.belowMinRate(state)
	case from.State() != nil:
		return noRater(from.State())
	}
	return nil
}

// belowMinRate refuses a rate that would never be reduced, up to rounding, 0.4 % in bfloat16.
func (p *plateau) belowMinRate(state abilities.LearningRater) error {
	rate, err := state.LearningRate()
	p.unknown = err != nil // if it persists, the first reduction returns it
	if lowest := p.MinRate; err == nil && rate < lowest*0.99 {
		return fmt.Errorf("the learning rate is %.6g, below MinRate, %g, so that it would never be reduced: expected a lower MinRate", rate, lowest)
	}
	return nil
}

func noRater(state any) error {
	if state == nil {
		return errNoState
	}
	return fmt.Errorf("a state of type %T has no learning rate to change: give it the methods LearningRate and SetLearningRate that loop.Stepper lists", state)
}
