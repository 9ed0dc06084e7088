package managed

import (
	"fmt"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Costs says what the compiler reckons that each of the step's programs takes, in the order of [Stepper.StableHLO]; one for
// several steps at once counts as about one step. [xla.ErrUnimplemented] under a strategy that does not compile whole steps.
func (s *Stepper) Costs() ([]xla.Cost, error) { return estimates(s, "cost", strategies.Program.Cost) }

// Memory says what memory the compiler reckons that each of the step's programs needs, in bytes, in the order of
// [Stepper.StableHLO]. [xla.ErrUnimplemented] as for [Stepper.Costs].
func (s *Stepper) Memory() ([]xla.Memory, error) {
	return estimates(s, "memory", strategies.Program.Memory)
}

func estimates[T any](s *Stepper, what string, ask func(strategies.Program) (T, error)) ([]T, error) {
	all := []T{}
	var err error
	s.cache.each(func(c *compiled) {
		if err == nil {
			var said T
			said, err = ask(c.program)
			all = append(all, said)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("managed: %s of the %s: %w", what, s.name, graphs.Inner(err))
	}
	return all, nil
}
