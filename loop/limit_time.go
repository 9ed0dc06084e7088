package loop

import (
	"context"
	"fmt"
	"time"
)

// TimeLimit ends the run at the first border between turns at which this run has been active for d, as if somebody
// asked to stop: the [Reason] is [Stopped], and [Result].Stop says so. It is for the hours that a machine is lent for.
// Until(Time(d)) is another thing: it counts the time of the earlier runs too ([From]), and stands where a number of
// steps may be wanted; a time limit goes beside that. What it stops with wraps [ErrPause]: the
// next run goes on. A turn is not broken off: leave time for one, and for what is saved at the end.
func TimeLimit(d time.Duration) Option {
	return func(s *settings) {
		if d <= 0 {
			s.errs = append(s.errs, fmt.Errorf("time limit must be positive, got %s", d))
			return
		}
		s.late = append(s.late, func(s *settings) {
			// One moment, not each step: steps in blocks stay together.
			Attend("time limit", At(Time(plus(int64(s.from.Time), int64(d)))), startWatcher(func(_ context.Context, r Report) error {
				return fmt.Errorf("this run has taken %s, its limit is %s: %w", r.Elapsed.Time-r.From.Time, d, ErrPause)
			}))(s)
		})
	}
}
