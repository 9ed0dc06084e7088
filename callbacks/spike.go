package callbacks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/loop"
)

// Spike is a value far above recent ones.
type Spike struct {
	Entry   string
	Value   float64
	Median  float64
	Window  int
	Elapsed loop.Elapsed
}

func (s Spike) String() string {
	return fmt.Sprintf("step %d: %s is %.4g, %.3g times the median %.4g of the last %d values",
		s.Elapsed.Steps, s.Entry, s.Value, s.Value/s.Median, s.Median, s.Window)
}

// WarnSpike calls warn if a value is more than factor (above 1) times the median of the last window values (above 0),
// once there are as many and if the median is positive. It ignores NaN. Reading each value costs a transfer per step
// on a device.
func WarnSpike(entry string, factor float64, window int, warn func(context.Context, Spike) error) loop.Callback {
	return watchEntry("warn of spikes", entry, func() (*spikes, error) {
		return &spikes{entry: entry, factor: factor, window: window, warn: warn}, checkSpikes(entry, factor, window, warn)
	})
}

type spikes struct {
	noEnd
	entry  string
	factor float64
	window int
	warn   func(context.Context, Spike) error
	last   []float64
}

func checkSpikes(entry string, factor float64, window int, warn func(context.Context, Spike) error) error {
	var errs []error
	if entry == "" {
		errs = append(errs, fmt.Errorf("%w: no entry to watch", records.ErrName))
	}
	if !(factor > 1) || !finite(factor) {
		errs = append(errs, fmt.Errorf("factor must be greater than 1 and finite, got %g", factor))
	}
	if window < 1 {
		errs = append(errs, fmt.Errorf("window must be positive, got %d", window))
	}
	if warn == nil {
		errs = append(errs, errNoFunction)
	}
	return errors.Join(errs...)
}

func (s *spikes) Watch(ctx context.Context, r loop.Report) error {
	v, err := r.Logs.Float(s.entry)
	if err != nil || v != v {
		return err
	}
	var spike *Spike
	if len(s.last) == s.window {
		if m := median(s.last); m > 0 && v > s.factor*m {
			spike = &Spike{s.entry, v, m, s.window, r.Elapsed}
		}
		s.last = slices.Delete(s.last, 0, 1)
	}
	s.last = append(s.last, v)
	if spike == nil {
		return nil
	}
	return s.warn(ctx, *spike)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return sorted[(n-1)/2]/2 + sorted[n/2]/2
}
