package callbacks

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// TimeLimit stops the run at the first border between turns at which this run has been active for d, which must be
// positive. The [loop.Reason] is then [loop.Stopped], and [loop.Result].Stop wraps [loop.ErrPause]: the run can be
// resumed. Until(Time(d)) counts the time of the earlier runs too ([loop.Continue]). A turn is not interrupted: leave
// time for one, and for what is saved at the end.
func TimeLimit(d time.Duration) loop.Callback {
	c := loop.Watch(loop.Never, func(_ context.Context, r loop.Report) error {
		return fmt.Errorf("this run has taken %s, its limit is %s: %w", r.Elapsed.Time-r.From.Time, d, loop.ErrPause)
	})
	c.Name = "time limit"
	if d <= 0 {
		return refused(c, fmt.Errorf("it must be positive, got %s", d))
	}
	// Due once, not in each step, so that blocks are not split.
	c.WhenRun = func(b loop.Beginning) loop.Schedule { return loop.At(loop.Time(sum(b.From.Time, d))) }
	return c
}

// sum is a+b, of numbers that are not negative, up to the largest there is.
func sum[P ~int64](a, b P) P { return a + min(b, math.MaxInt64-a) }
