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

// Costs says what each of the step's programs takes, in the order of [Stepper.StableHLO]; one for several steps at once
// counts as about one step. Where the plugin reckons nothing, lazo counts, for which each program is compiled once
// more: see [xla.Program.Cost]. A step that has no programs yet is an error: they come into being at its first step, or
// by [Stepper.Prepare]. [xla.ErrUnimplemented] under a strategy that does not compile whole steps.
func (s *Stepper) Costs() ([]xla.Cost, error) { return estimates(s, "cost", strategies.Program.Cost) }

// Memory says what memory the compiler reckons that each of the step's programs needs, in bytes, in the order of
// [Stepper.StableHLO]. Errors are those of [Stepper.Costs].
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
	if err == nil && len(all) == 0 {
		err = errors.New("it has no programs yet: make a step, or call Prepare with a state and a batch, before")
	}
	if err != nil {
		return nil, fmt.Errorf("managed: %s of the %s: %w", what, s.name, graphs.Inner(err))
	}
	return all, nil
}

// dumped is the text of a program.
type dumped struct{ step, text string }

// DumpXLA writes the programs that steps were compiled to for this state into a directory, which must exist: a file
// each, in the order in which they were compiled (00-train_step.mlir), as StableHLO. The Go backend has no programs to
// write. [callbacks.Profile] calls it.
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
