package managed

import (
	"sync"
	"time"

	"github.com/lazo-ml/lazo/internal/abilities"
)

var _ abilities.Compiler = (*State)(nil)

type compiles struct {
	mu    sync.Mutex
	now   int
	since time.Time
}

func (c *compiles) begin() (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now++; c.now == 1 {
		c.since = time.Now()
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now--
	}
}

// CompilingSince returns when the running compilation for this state began, or false.
func (s *State) CompilingSince() (time.Time, bool) {
	s.compiles.mu.Lock()
	defer s.compiles.mu.Unlock()
	return s.compiles.since, s.compiles.now > 0
}
