package callbacks

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// TimeLimit ends the run at the first border between turns at which this run has been active for d, as if somebody
// asked to stop: the [loop.Reason] is [loop.Stopped], and [loop.Result].Stop says so. It is for the hours that a machine is lent for.
// Until(Time(d)) is another thing: it counts the time of the earlier runs too ([loop.From]), and stands where a number of
// steps may be wanted; a time limit goes beside that. What it stops with wraps [loop.ErrPause]: the
// next run goes on. A turn is not broken off: leave time for one, and for what is saved at the end.
func TimeLimit(d time.Duration) loop.Callback {
	c := loop.Watch(loop.Never, func(_ context.Context, r loop.Report) error {
		return fmt.Errorf("this run has taken %s, its limit is %s: %w", r.Elapsed.Time-r.From.Time, d, loop.ErrPause)
	})
	c.Name = "time limit"
	if d <= 0 {
		return refused(c, fmt.Errorf("it must be positive, got %s", d))
	}
	// One moment, not each step: steps in blocks stay together.
	c.WhenRun = func(b loop.Beginning) loop.Schedule { return loop.At(loop.Time(sum(b.From.Time, d))) }
	return c
}

// sum is a+b, of numbers that are not negative, up to the largest there is.
func sum[P ~int64](a, b P) P { return a + min(b, math.MaxInt64-a) }
