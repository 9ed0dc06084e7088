package callbacks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// ReduceOnPlateau multiplies the learning rate of the state by a factor between 0 and 1 when an entry had no better
// value for the patience, which then starts again. It is called in the turns in which the entry was logged. A state
// that is no [loop.LearningRater] is an error at the start. [Cooldown] sets how long after a reduction the patience
// does not run, [MinRate] a lower bound of the rate, [OnReduce] a function that is called after each reduction. In a
// run that is resumed with its history ([loop.Continue]) the patience goes on; the rate is part of the state.
func ReduceOnPlateau(entry string, mode loop.Mode, factor float64, patience Patience, options ...MonitorOption) loop.Change {
	options = slices.Clone(options)
	return changeByValue("reduce on plateau", entry, func() (*plateau, error) { return newPlateau(entry, mode, factor, patience, options) })
}

// plateauSettings are the settings of [ReduceOnPlateau] only.
type plateauSettings struct {
	options  []string // the names of those that were given
	cooldown Patience
	minRate  float64
	onReduce func(ctx context.Context, r loop.Report, from, to float64) error
}

// Cooldown is how long after a reduction the patience of [ReduceOnPlateau] does not run: Evaluations(1) leaves out one
// value. In steps, samples or time, the patience runs from the last value within it. Better values are noticed
// meanwhile.
func Cooldown(p Patience) MonitorOption {
	return func(m *monitor) {
		m.plateau.options = append(m.plateau.options, "cooldown")
		if _, length, ok := measure(p, loop.Elapsed{}, 0); !ok || length < 0 {
			m.errs = append(m.errs, fmt.Errorf("cooldown must be zero or positive, in Steps, Samples, Time or Evaluations, got %v", p))
		}
		m.plateau.cooldown = p
	}
}

// lowestRate is the smallest normal float32: below it a rate loses digits, and then is 0.
const lowestRate = 0x1p-126

// MinRate is the lower bound of the learning rate for [ReduceOnPlateau]; a rate that is below it at the start, or, of a
// state that has none before its first step, at the entry's first value, is an error. It must be 0 or more and finite;
// it is at least 1.2e-38, the smallest normal float32, which is the default. A rate of a type that cannot hold a
// smaller number stays as it is ([loop.ErrRateTooSmall]).
func MinRate(rate float64) MonitorOption {
	return func(m *monitor) {
		m.plateau.options = append(m.plateau.options, "min rate")
		if !(rate >= 0) || !finite(rate) {
			m.errs = append(m.errs, fmt.Errorf("min rate must be zero or positive and finite, got %g", rate))
		}
		m.plateau.minRate = rate
	}
}

// OnReduce calls a function when [ReduceOnPlateau] has changed the learning rate. An error of the function ends the
// run.
func OnReduce(do func(ctx context.Context, r loop.Report, from, to float64) error) MonitorOption {
	return func(m *monitor) {
		m.plateau.options = append(m.plateau.options, "on reduce")
		if do == nil {
			m.errs = append(m.errs, fmt.Errorf("on reduce: %w", loop.ErrNoFunction))
		}
		m.plateau.onReduce = do
	}
}

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

func newPlateau(entry string, mode loop.Mode, factor float64, patience Patience, options []MonitorOption) (*plateau, error) {
	errs := []error{checkPatience(patience)}
	if !(factor > 0 && factor < 1) {
		errs = append(errs, fmt.Errorf("factor must lie between 0 and 1, got %g", factor))
	}
	m, err := newPlateauMonitor(entry, mode, options)
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
		if state, ok := loop.StateAs[loop.LearningRater](s); ok {
			if err := p.belowMinRate(state); err != nil {
				return err
			}
		}
	}
	if !p.due(r.Elapsed, v) {
		return nil
	}
	state, ok := loop.StateAs[loop.LearningRater](s)
	if !ok {
		return noRater(s.Get())
	}
	old, err := state.LearningRate()
	if err != nil {
		return fmt.Errorf("learning rate: %w", err)
	}
	lowest := max(p.plateau.minRate, lowestRate)
	if !(old > lowest) {
		return nil
	}
	rate := max(old*p.factor, lowest)
	if err := state.SetLearningRate(rate); errors.Is(err, loop.ErrRateTooSmall) {
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
	if p.plateau.onReduce == nil {
		return nil
	}
	return p.plateau.onReduce(ctx, r, old, rate)
}

// due takes the next value and reports whether the rate is to be reduced.
func (p *plateau) due(at loop.Elapsed, v float64) bool {
	p.see(at, v) // a better value begins to wait anew
	if p.cools {
		p.afterCut++
		if passed, cooldown, _ := measure(p.plateau.cooldown, at.Since(p.cut), p.afterCut); passed <= cooldown {
			p.wait(at)
			return false
		}
	}
	return p.patienceOver(p.patience, at)
}

// reduced begins to wait anew.
func (p *plateau) reduced(at loop.Elapsed) {
	p.wait(at)
	p.cut, p.afterCut, p.cools = at, 0, p.plateau.cooldown != nil
}

func (p *plateau) resume(from loop.Beginning) error {
	p.replay(from, func(at loop.Elapsed, v float64) {
		// At the lowest rate, nothing was reduced then; but nothing will be now either.
		if p.due(at, v) {
			p.reduced(at)
		}
	})
	state, ok := loop.StateAs[loop.LearningRater](from)
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
func (p *plateau) belowMinRate(state loop.LearningRater) error {
	rate, err := state.LearningRate()
	p.unknown = err != nil // which the first reduction gives, if it is so still
	if lowest := p.plateau.minRate; err == nil && rate < lowest*0.99 {
		return fmt.Errorf("the learning rate is %.6g, below MinRate, %g, so that it would never be reduced: expected a lower MinRate", rate, lowest)
	}
	return nil
}

func noRater(state any) error {
	if state == nil {
		return loop.ErrNoState
	}
	return fmt.Errorf("a state of type %T has no learning rate to change: give it the methods of loop.LearningRater", state)
}
