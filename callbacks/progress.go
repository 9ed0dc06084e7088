package callbacks

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// LogProgress logs a record of level Info when it is due: the steps per second since the last and, with [loop.Until],
// the part done and the time left: "8.3 steps/s, 40.0% (4/10), ETA: 1h12m".
func LogProgress(logger *slog.Logger, when loop.Schedule) loop.Callback {
	if logger == nil {
		return idle("progress log")
	}
	return loop.Callback{Name: "progress log", When: when.AndAtStart(), AtRank0: true, Start: func(loop.Beginning) (loop.Attendant, error) {
		return &progressLog{logger: logger}, nil
	}}
}

type progressLog struct {
	logger *slog.Logger
	begun  bool
	last   measurePoint
	steps  int64
}

func (l *progressLog) Watch(ctx context.Context, r loop.Report) error {
	steps, took := r.Elapsed.Steps-l.steps, r.Elapsed.Time-l.last.time
	if l.begun && (steps <= 0 || took <= 0) {
		return nil // again in the same turn
	}
	if l.begun && l.logger.Enabled(ctx, slog.LevelInfo) {
		rate := float64(steps) / took.Seconds()
		l.logger.LogAttrs(ctx, slog.LevelInfo, l.text(r, rate),
			slog.Int64(elapsedSteps, r.Elapsed.Steps), slog.Float64("steps_per_second", rate))
	}
	l.begun, l.last, l.steps = true, measurePointOf(r), r.Elapsed.Steps
	return nil
}

func (l *progressLog) End(context.Context, loop.Ending) error { return nil }

func (l *progressLog) text(r loop.Report, rate float64) string {
	text := fmt.Sprintf("%.1f steps/s", rate)
	p := progressOf(r)
	if p.all == 0 {
		return text
	}
	part := fmt.Sprintf("%d/%d", p.done, p.all)
	if p.isTime {
		part = minutes(time.Duration(p.done)) + "/" + minutes(time.Duration(p.all))
	} else if _, ok := r.Until.(loop.Samples); ok {
		part += " samples"
	}
	text += fmt.Sprintf(", %.1f%% (%s)", 100*float64(p.done)/float64(p.all), part)
	if left, ok := p.left(r.Elapsed.Time, l.last); ok {
		text += ", ETA: " + minutes(left)
	}
	return text
}

func minutes(d time.Duration) string {
	text := fmt.Sprintf("%dm", d%time.Hour/time.Minute)
	if hours := d % day / time.Hour; hours > 0 {
		text = fmt.Sprintf("%dh", hours) + text
	}
	if d >= day {
		text = fmt.Sprintf("%dd", d/day) + text
	}
	return text
}
