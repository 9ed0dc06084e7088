package managed

import (
	"fmt"

	"github.com/lazo-ml/lazo/xla"
)

// Costs says what the compiler reckons that each of the step's programs takes, in the order of [Stepper.StableHLO]; one for
// several steps at once counts as about one step. [xla.ErrUnimplemented] under a strategy that does not compile whole steps.
func (s *Stepper) Costs() ([]xla.Cost, error) {
	return estimates(s, "cost", func(p interface{ Cost() (xla.Cost, error) }) (xla.Cost, error) { return p.Cost() })
}

// Memory says what memory the compiler reckons that each of the step's programs needs, in bytes, in the order of
// [Stepper.StableHLO]. [xla.ErrUnimplemented] as for [Stepper.Costs].
func (s *Stepper) Memory() ([]xla.Memory, error) {
	return estimates(s, "memory", func(p interface{ Memory() (xla.Memory, error) }) (xla.Memory, error) { return p.Memory() })
}

func estimates[P, T any](s *Stepper, what string, ask func(P) (T, error)) ([]T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]T, len(s.compiled))
	for i, c := range s.compiled {
		p, ok := c.program.(P)
		if !ok {
			return nil, fmt.Errorf("managed: %s of the %s: %w: the strategy %v does not know it", what, s.name, xla.ErrUnimplemented, c.state.strategy)
		}
		var err error
		if all[i], err = ask(p); err != nil {
			return nil, fmt.Errorf("managed: %s of the %s: %w", what, s.name, err)
		}
	}
	return all, nil
}
