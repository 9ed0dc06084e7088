package managed

import (
	"context"
	"fmt"

	"github.com/lazo-ml/lazo/strategies"
)

// MoveTo moves the state to another strategy: from one device to several, to eager to look into a step, to another
// runtime. Nothing is lost: parameters, optimizer, random state, metrics and counters come along, and the next random
// bits are those that would have come without it. It waits for the steps that were begun, and reads all logs, so that
// the runtime of before may be closed. Steppers compile anew at their next step, also when the state moves back. To the
// strategy where it is, nothing is done.
//
// Until it is done the values are there twice, so that after an error the state is where it was; only if the old values
// could not be freed has it moved.
func (s *State) MoveTo(ctx context.Context, to strategies.Strategy) error {
	if err := usable(to, "strategies.Jit(runtime)"); err != nil {
		return fmt.Errorf("managed: move: %w", err)
	}
	if err := s.moveTo(ctx, to); err != nil {
		return fmt.Errorf("managed: move to %v: %w", to, err)
	}
	return nil
}

func (s *State) moveTo(ctx context.Context, to strategies.Strategy) error {
	done, err := s.values.Change(ctx)
	if err != nil {
		return err
	}
	defer done()
	from := s.values.Strategy()
	moved, err := s.values.MoveTo(ctx, to)
	if moved && err != nil {
		return fmt.Errorf("moved, but free what was under %v: %w", from, err)
	}
	return err
}
