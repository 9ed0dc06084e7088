package callbacks

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"log/slog"
	"slices"

	"github.com/lazo-ml/lazo/loop"
)

// Log writes a record of level Info in each due iteration that logged anything: the elapsed steps, samples and time,
// and all entries by full name, an unreadable value as its error. A disabled level reads no values.
func Log(logger *slog.Logger, when loop.Schedule) loop.Callback {
	if logger == nil {
		return idle("log")
	}
	c := loop.Watch(when, func(ctx context.Context, r loop.Report) error {
		if r.Logs.Len() == 0 || !logger.Enabled(ctx, slog.LevelInfo) {
			return nil
		}
		logger.LogAttrs(ctx, slog.LevelInfo, "step", attributes(r)...)
		return nil
	})
	c.AtRank0 = true
	return c
}

func idle(name string) loop.Callback {
	c := loop.Watch(loop.Never, func(context.Context, loop.Report) error { return nil })
	c.Name = name
	return c
}

func attributes(r loop.Report) []slog.Attr {
	all := []slog.Attr{
		slog.Int64(elapsedSteps, r.Elapsed.Steps),
		slog.Int64("elapsed.samples", r.Elapsed.Samples),
		slog.Duration("elapsed.time", r.Elapsed.Time),
	}
	for e := range r.Logs.All() {
		all = append(all, attribute(e))
	}
	slices.SortStableFunc(all, func(a, b slog.Attr) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

func attribute(e loop.Entry) slog.Attr {
	v, err := e.Value.Float()
	if err == nil {
		return slog.Float64(e.Path(), v)
	}
	if v, err := e.Any(); err == nil {
		return slog.Any(e.Path(), brief(v))
	}
	return slog.String(e.Path(), err.Error())
}

func brief(v any) any {
	switch v := v.(type) {
	case image.Image:
		size := v.Bounds().Size()
		return fmt.Sprintf("image %dx%d", size.X, size.Y)
	case []image.Image:
		return fmt.Sprintf("%d images", len(v))
	}
	return v
}

const elapsedSteps = "elapsed.steps"
