package managed

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Costs returns the estimated costs of the step's programs, in the order of [Stepper.StableHLO]; a program of several
// steps counts as about one. If the plugin has no estimate, lazo counts ([xla.Program.Cost]). It is an error before the
// first step or [Stepper.Prepare], and [xla.ErrUnimplemented] under Eager.
func (s *Stepper) Costs() ([]xla.Cost, error) { return estimates(s, "cost", strategies.Program.Cost) }

// Memory returns the compiler's estimates in bytes, with the order and errors of [Stepper.Costs].
func (s *Stepper) Memory() ([]xla.Memory, error) {
	return estimates(s, "memory", strategies.Program.Memory)
}

func estimates[T any](s *Stepper, what string, ask func(strategies.Program) (T, error)) ([]T, error) {
	if s.none() {
		return nil, fmt.Errorf("managed: %s of the %s: %w", what, s, errNoStep)
	}
	all := []T{}
	var err error
	s.cache.each(func(c *compiled) {
		if err == nil {
			var said T
			said, err = ask(c.program)
			all = append(all, said)
		}
	})
	if err == nil && len(all) == 0 {
		err = errors.New("it has no programs yet: make a step, or call Prepare with a state and a batch, before")
	}
	if err != nil {
		return nil, fmt.Errorf("managed: %s of the %s: %w", what, s.name, graphs.Inner(err))
	}
	return all, nil
}

// DumpXLA writes the state's programs as StableHLO into an existing directory, in compilation order
// (00-train_step.mlir). The Go backend has none.
func (s *State) DumpXLA(dir string) error {
	leave := s.values.PeekAll()
	programs := slices.Clone(s.programs)
	leave()
	for i, p := range programs {
		if p.text == "" {
			continue
		}
		name := fmt.Sprintf("%02d-%s.mlir", i, strings.ReplaceAll(p.step, " ", "_"))
		if err := regular.Write(filepath.Join(dir, name), []byte(p.text), 0o644); err != nil {
			return fmt.Errorf("managed: dump: %w", err)
		}
	}
	return nil
}
