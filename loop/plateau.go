package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ReduceOnPlateau multiplies the learning rate of the state by a factor between 0 and 1 when an entry had no better
// value for longer than the patience, and then waits anew. It looks in the turns in which the entry was logged. A state
// that is no [LearningRater] is an error at the start. With [Cooldown], values right after a reduction do not count as
// waiting, though they may be better ones; with [MinRate], the rate does not fall below one. [OnReduce] hears of each
// reduction. A run that is resumed with its history ([From]) waits on where the earlier one ended; the rate is part of
// the state.
//
// In Keras a cooldown of 1 does nothing, because the value that ends a cooldown counts as waiting already; here
// Cooldown(Evaluations(1)) passes over one value. Keras asks for better by 0.0001 unless told otherwise, we for any
// better value.
func ReduceOnPlateau(entry string, mode Mode, factor float64, patience Patience, options ...MonitorOption) Option {
	options = slices.Clone(options)
	watch := watchValue("reduce on plateau", entry, func() (*plateau, error) { return newPlateau(entry, mode, factor, patience, options) })
	return func(s *settings) {
		s.watchers = append(s.watchers, watching{name: "reduce on plateau", when: AtStart, first: true,
			start: startWatcher(func(_ context.Context, r Report) error {
				state, err := rater(r)
				if err != nil {
					return err
				}
				return belowMinRate(state, options)
			})})
		watch(s)
	}
}

// belowMinRate finds a rate that no reduction would change. One that is there by rounding is right: of bfloat16 it is 0.4 %.
func belowMinRate(state LearningRater, options []MonitorOption) error {
	var m monitor
	for _, o := range options {
		if o != nil {
			o(&m)
		}
	}
	rate, err := state.LearningRate()
	if lowest := m.plateau.minRate; err == nil && rate < lowest*0.99 { // another error the first reduction tells
		return fmt.Errorf("the learning rate is %g, below MinRate, %g, so that it would never be reduced: expected a lower MinRate", rate, lowest)
	}
	return nil
}

// NewReduceOnPlateau is [ReduceOnPlateau] for a loop by hand: call its Watch in each pass that logged the entry, with
// the state in the report ([WithState]).
func NewReduceOnPlateau(entry string, mode Mode, factor float64, patience Patience, options ...MonitorOption) (Attendant, error) {
	p, err := newPlateau(entry, mode, factor, patience, options)
	if err != nil {
		return nil, fmt.Errorf("loop: reduce on plateau: %w", err)
	}
	return p, nil
}

// plateauSettings is what only [ReduceOnPlateau] knows.
type plateauSettings struct {
	given    []string // what was set
	cooldown Patience
	minRate  float64
	onReduce func(ctx context.Context, r Report, from, to float64) error
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
		if p == nil || p.length() < 0 {
			m.errs = append(m.errs, fmt.Errorf("cooldown must be zero or positive, got %v", p))
		}
		m.plateau.cooldown = p
	}
}

// lowestRate is the smallest normal float32: below it a rate loses its digits, and then is 0.
const lowestRate = 0x1p-126

// MinRate is the learning rate that [ReduceOnPlateau] does not go below; one that begins below it is an error at the start. Not said, or less, it is 1.2e-38, the smallest float32
// that has all its digits. A state whose rate is of a type that holds no such number stays at its last one ([ErrRateTooSmall]).
func MinRate(rate float64) MonitorOption {
	return func(m *monitor) {
		m.plateau.given = append(m.plateau.given, "min rate")
		if !(rate >= 0) || !finite(rate) {
			m.errs = append(m.errs, fmt.Errorf("min rate must be zero or positive and finite, got %g", rate))
		}
		m.plateau.minRate = rate
	}
}

// OnReduce calls a function when [ReduceOnPlateau] has changed the learning rate. It is a watcher: an error of it ends
// the run.
func OnReduce(do func(ctx context.Context, r Report, from, to float64) error) MonitorOption {
	return func(m *monitor) {
		m.plateau.given = append(m.plateau.given, "on reduce")
		if do == nil {
			m.errs = append(m.errs, fmt.Errorf("on reduce: %w", errNoFunction))
		}
		m.plateau.onReduce = do
	}
}

type plateau struct {
	noEnd
	monitor
	factor   float64
	patience Patience
	// A cooldown is measured from the last reduction.
	cut      Elapsed
	afterCut int64 // values since then
	cools    bool  // there was a reduction, and there is a cooldown
}

func newPlateau(entry string, mode Mode, factor float64, patience Patience, options []MonitorOption) (*plateau, error) {
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

func (p *plateau) Watch(ctx context.Context, r Report) error {
	v, err := p.read(r)
	if err != nil {
		return err
	}
	if !p.due(r.Elapsed, v) {
		return nil
	}
	state, err := rater(r)
	if err != nil {
		return err
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
	if err := state.SetLearningRate(rate); errors.Is(err, ErrRateTooSmall) {
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
func (p *plateau) due(at Elapsed, v float64) bool {
	p.see(at, v) // a better value begins to wait anew
	if p.cools {
		p.afterCut++
		if c := p.plateau.cooldown; c.measure(at.Since(p.cut), p.afterCut) <= c.length() {
			p.wait(at)
			return false
		}
	}
	return p.spent(p.patience, at)
}

// reduced begins to wait anew.
func (p *plateau) reduced(at Elapsed) {
	p.wait(at)
	p.cut, p.afterCut, p.cools = at, 0, p.plateau.cooldown != nil
}

func (p *plateau) resume(from Elapsed, h *History, when *Schedule) {
	p.replay(from, h, when, func(at Elapsed, v float64) {
		// At the lowest rate, nothing was reduced then; but nothing will be now either.
		if p.due(at, v) {
			p.reduced(at)
		}
	})
}

// rater is the state of a report, if it has a learning rate.
func rater(r Report) (LearningRater, error) {
	if r.state == nil {
		return nil, errNoState
	}
	if s, ok := as[LearningRater](r.State(), r.state.place()); ok {
		return s, nil
	}
	return nil, fmt.Errorf("a state of type %T has no learning rate to change: give it the methods of loop.LearningRater", r.State())
}
