package managed

import (
	"sync"
	"time"

	"github.com/lazo-ml/lazo/internal/abilities"
)

var _ abilities.Compiler = (*State)(nil)

// compiles counts the running compilations for a state.
type compiles struct {
	mu    sync.Mutex
	now   int
	since time.Time // start of the first of them
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

// CompilingSince returns when the running compilation of a step for this state began, or false if there is none. See
// [loop.State].
func (s *State) CompilingSince() (time.Time, bool) {
	s.compiles.mu.Lock()
	defer s.compiles.mu.Unlock()
	return s.compiles.since, s.compiles.now > 0
}
