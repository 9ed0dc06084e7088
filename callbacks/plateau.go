package callbacks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/loop"
)

// ReduceOnPlateau multiplies the learning rate of the state by a factor between 0 and 1 when an entry had no better
// value for the patience, which then starts again. It is called in the turns in which the entry was logged. A state
// without a learning rate ([loop.State]) is an error at the start. A run that is resumed with its history
// ([loop.Continue]) the patience goes on; the rate is part of the state.
func ReduceOnPlateau(entry string, factor float64, patience Patience, settings ...Monitor) loop.Change {
	settings = slices.Clone(settings)
	return changeByValue("reduce on plateau", entry, func() (*plateau, error) { return newPlateau(entry, factor, patience, settings) })
}

// lowestRate is the smallest normal float32: below it a rate loses digits, and then is 0.
const lowestRate = 0x1p-126

type plateau struct {
	nothingAtEnd
	monitor
	factor   float64
	patience Patience
	// A cooldown is measured from the last reduction.
	cut      loop.Elapsed
	afterCut int64 // values since the last reduction
	cools    bool  // there was a reduction, and there is a cooldown
	unknown  bool  // the rate could not be read at the start: before the first step some optimizers have none
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

func (p *plateau) Change(ctx context.Context, r loop.Report, s loop.State) error {
	v, err := p.read(r)
	if err != nil {
		return err
	}
	if p.unknown {
		if state, ok := loop.StateAs[abilities.LearningRater](s); ok {
			if err := p.belowMinRate(state); err != nil {
				return err
			}
		}
	}
	if !p.due(r.Elapsed, v) {
		return nil
	}
	state, ok := loop.StateAs[abilities.LearningRater](s)
	if !ok {
		return noRater(s.Get())
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
		return nil // it cannot be lower
	} else if err != nil {
		return fmt.Errorf("learning rate %g: %w", rate, err)
	}
	if now, err := state.LearningRate(); err != nil {
		return fmt.Errorf("learning rate: %w", err)
	} else if now == old { // as near to the lowest rate as the number that holds it can be
		return nil
	}
	p.reduced(r.Elapsed)
	if p.OnReduce == nil {
		return nil
	}
	return p.OnReduce(ctx, r, old, rate)
}

// due takes the next value and reports whether the rate is to be reduced.
func (p *plateau) due(at loop.Elapsed, v float64) bool {
	p.see(at, v) // a better value begins to wait anew
	if p.cools {
		p.afterCut++
		if passed, cooldown, _ := measure(p.Cooldown, at.Since(p.cut), p.afterCut); passed <= cooldown {
			p.wait(at)
			return false
		}
	}
	return p.patienceOver(p.patience, at)
}

// reduced begins to wait anew.
func (p *plateau) reduced(at loop.Elapsed) {
	p.wait(at)
	p.cut, p.afterCut, p.cools = at, 0, p.Cooldown != nil
}

func (p *plateau) resume(from loop.Beginning) error {
	p.replay(from, func(at loop.Elapsed, v float64) {
		// At the lowest rate, nothing was reduced then; but nothing will be now either.
		if p.due(at, v) {
			p.reduced(at)
		}
	})
	state, ok := loop.StateAs[abilities.LearningRater](from)
	switch {
	case ok:
		return p.belowMinRate(state)
	case from.State() != nil:
		return noRater(from.State())
	}
	return nil
}

// belowMinRate finds a rate that no reduction would change. One that is there by rounding is right: of bfloat16 it is
// 0.4 %.
func (p *plateau) belowMinRate(state abilities.LearningRater) error {
	rate, err := state.LearningRate()
	p.unknown = err != nil // which the first reduction gives, if it is so still
	if lowest := p.MinRate; err == nil && rate < lowest*0.99 {
		return fmt.Errorf("the learning rate is %.6g, below MinRate, %g, so that it would never be reduced: expected a lower MinRate", rate, lowest)
	}
	return nil
}

func noRater(state any) error {
	if state == nil {
		return errNoState
	}
	return fmt.Errorf("a state of type %T has no learning rate to change: give it the methods of abilities.LearningRater", state)
}
