package callbacks

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// LogProgress writes one record of level Info each time it is due to a structured logger (nil logs nothing): how fast the
// loop went since the one before, and if there is an [loop.Until], how far it is and how long it will take at this speed:
// "8.3 steps/s, 40.0% (4/10), ETA: 1h12m". The first record needs a stretch before it: there is none at the start, nor by hand
// at the first call. It reads no logged values.
func LogProgress(logger *slog.Logger, when loop.Schedule) loop.Callback {
	if logger == nil {
		return nothing("progress log")
	}
	return loop.Callback{Name: "progress log", When: when.AndAtStart(), Start: func(loop.Beginning) (loop.Attendant, error) {
		return &progressLog{logger: logger}, nil
	}}
}

type progressLog struct {
	logger *slog.Logger
	begun  bool
	last   mark
	steps  int64
}

func (p *progressLog) Watch(ctx context.Context, r loop.Report) error {
	steps, took := r.Elapsed.Steps-p.steps, r.Elapsed.Time-p.last.time
	if p.begun && (steps <= 0 || took <= 0) {
		return nil // at the end, in the same turn once more
	}
	if p.begun && p.logger.Enabled(ctx, slog.LevelInfo) {
		rate := float64(steps) / took.Seconds()
		p.logger.LogAttrs(ctx, slog.LevelInfo, p.text(r, rate),
			slog.Int64(elapsedSteps, r.Elapsed.Steps), slog.Float64("steps_per_second", rate))
	}
	p.begun, p.last, p.steps = true, markOf(r), r.Elapsed.Steps
	return nil
}

func (p *progressLog) End(context.Context, loop.Ending) error { return nil }

func (p *progressLog) text(r loop.Report, rate float64) string {
	text := fmt.Sprintf("%.1f steps/s", rate)
	done, all, ok := span(r)
	if !ok {
		return text
	}
	part := fmt.Sprintf("%d/%d", done, all)
	switch r.Until.(type) {
	case loop.Time, loop.Date:
		part = minutes(time.Duration(done)) + "/" + minutes(time.Duration(all))
	case loop.Samples:
		part += " samples"
	}
	text += fmt.Sprintf(", %.1f%% (%s)", 100*float64(done)/float64(all), part)
	if left, ok := left(r, p.last); ok {
		text += ", ETA: " + minutes(left)
	}
	return text
}

// minutes is a duration in whole minutes: 7m, 2h0m, 1d10h17m.
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
