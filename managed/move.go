package managed

import (
	"context"
	"fmt"

	"github.com/lazo-ml/lazo/strategies"
)

// MoveTo moves the state to another strategy, even of another runtime. It waits for started steps and reads all logs:
// the old runtime may be closed. Steppers compile again.
//
// Both copies exist meanwhile. After an error the state has not moved, unless only freeing the old values failed.
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
		return fmt.Errorf("the state moved, but freeing its memory under %v failed: %w", from, err)
	}
	return err
}
