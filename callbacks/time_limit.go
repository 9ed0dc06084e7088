package callbacks

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// TimeLimit stops the run between iterations after it has been active for d, which must be positive: leave time for an
// iteration and the last save. [loop.Result].Stop wraps [loop.ErrPause]: the run can be resumed. Until(Time(d)) also
// counts earlier runs ([loop.Continue]).
func TimeLimit(d time.Duration) loop.Callback {
	c := loop.Watch(loop.Never, func(_ context.Context, r loop.Report) error {
		return fmt.Errorf("this run has taken %s, its limit is %s: %w", r.Elapsed.Time-r.From.Time, d, loop.ErrPause)
	})
	c.Name = "time limit"
	if d <= 0 {
		return refused(c, fmt.Errorf("it must be positive, got %s", d))
	}
	// due once: blocks are not split
	c.WhenRun = func(b loop.Beginning) loop.Schedule { return loop.At(loop.Time(sum(b.From.Time, d))) }
	return c
}

func sum[P ~int64](a, b P) P { return a + min(b, math.MaxInt64-a) }
