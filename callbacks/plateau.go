package callbacks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// ReduceOnPlateau multiplies the learning rate of the state by a factor between 0 and 1 when an entry had no better
// value for longer than the patience, and then waits anew. It looks in the turns in which the entry was logged. A state
// that is no [loop.LearningRater] is an error at the start. With [Cooldown], values right after a reduction do not count as
// waiting, though they may be better ones; with [MinRate], the rate does not fall below one. [OnReduce] hears of each
// reduction. A run that is resumed with its history ([loop.From]) waits on where the earlier one ended; the rate is part of
// the state.
//
// In Keras a cooldown of 1 does nothing, because the value that ends a cooldown counts as waiting already; here
// Cooldown(Evaluations(1)) passes over one value. Keras asks for better by 0.0001 by default, we for any
// better value.
func ReduceOnPlateau(entry string, mode loop.Mode, factor float64, patience Patience, options ...MonitorOption) loop.Change {
	options = slices.Clone(options)
	return changeByValue("reduce on plateau", entry, func() (*plateau, error) { return newPlateau(entry, mode, factor, patience, options) })
}

// plateauSettings is what only [ReduceOnPlateau] knows.
type plateauSettings struct {
	given    []string // what was set
	cooldown Patience
	minRate  float64
	onReduce func(ctx context.Context, r loop.Report, from, to float64) error
}

func (p plateauSettings) meaningless() error {
	if len(p.given) == 0 {
		return nil
	}
	return fmt.Errorf("%s means something to ReduceOnPlateau only", p.given[0])
}

// Cooldown is how long after a reduction [ReduceOnPlateau] does not count waiting. Measured in steps, samples or time,
// the values within it are passed over, and waiting is measured from the last of them.
func Cooldown(p Patience) MonitorOption {
	return func(m *monitor) {
		m.plateau.given = append(m.plateau.given, "cooldown")
		if _, length, ok := measure(p, loop.Elapsed{}, 0); !ok || length < 0 {
			m.errs = append(m.errs, fmt.Errorf("cooldown must be zero or positive, in Steps, Samples, Time or Evaluations, got %v", p))
		}
		m.plateau.cooldown = p
	}
}

// lowestRate is the smallest normal float32: below it a rate loses its digits, and then is 0.
const lowestRate = 0x1p-126

// MinRate is the learning rate that [ReduceOnPlateau] does not go below; one that begins below it is an error at the start.
// Not said, or less, it is 1.2e-38, the smallest float32 that has all its digits. A state whose rate is of a type that holds no such number stays at its last one ([loop.ErrRateTooSmall]).
func MinRate(rate float64) MonitorOption {
	return func(m *monitor) {
		m.plateau.given = append(m.plateau.given, "min rate")
		if !(rate >= 0) || !finite(rate) {
			m.errs = append(m.errs, fmt.Errorf("min rate must be zero or positive and finite, got %g", rate))
		}
		m.plateau.minRate = rate
	}
}

// OnReduce calls a function when [ReduceOnPlateau] has changed the learning rate. It is a callback: an error of it ends
// the run.
func OnReduce(do func(ctx context.Context, r loop.Report, from, to float64) error) MonitorOption {
	return func(m *monitor) {
		m.plateau.given = append(m.plateau.given, "on reduce")
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
	afterCut int64 // values since then
	cools    bool  // there was a reduction, and there is a cooldown
}

func newPlateau(entry string, mode loop.Mode, factor float64, patience Patience, options []MonitorOption) (*plateau, error) {
	errs := []error{checkPatience(patience)}
	if !(factor > 0 && factor < 1) {
		errs = append(errs, fmt.Errorf("factor must lie between 0 and 1, got %g", factor))
	}
	m, err := newMonitor(entry, mode, options)
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
		return nil // it is as low as it can be
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

// due takes the next value and tells whether the rate is to be reduced.
func (p *plateau) due(at loop.Elapsed, v float64) bool {
	p.see(at, v) // a better value begins to wait anew
	if p.cools {
		p.afterCut++
		if passed, cooldown, _ := measure(p.plateau.cooldown, at.Since(p.cut), p.afterCut); passed <= cooldown {
			p.wait(at)
			return false
		}
	}
	return p.spent(p.patience, at)
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

// belowMinRate finds a rate that no reduction would change. One that is there by rounding is right: of bfloat16 it is 0.4 %.
func (p *plateau) belowMinRate(state loop.LearningRater) error {
	rate, err := state.LearningRate()
	if lowest := p.plateau.minRate; err == nil && rate < lowest*0.99 { // another error the first reduction gives
		return fmt.Errorf("the learning rate is %g, below MinRate, %g, so that it would never be reduced: expected a lower MinRate", rate, lowest)
	}
	return nil
}

func noRater(state any) error {
	if state == nil {
		return loop.ErrNoState
	}
	return fmt.Errorf("a state of type %T has no learning rate to change: give it the methods of loop.LearningRater", state)
}
