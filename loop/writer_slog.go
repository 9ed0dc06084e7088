package loop

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"log/slog"
	"slices"
)

// Log writes one record of level Info a due turn that logged anything to a structured logger (nil logs nothing): the
// elapsed steps, samples and time, and all entries by their full names, sorted. A value that cannot be read stands
// there as its error, an image as its size. Values are read only if the logger takes the level. What a logger makes of its own troubles
// is its affair: they do not reach the run.
func Log(logger *slog.Logger, when Schedule) Option {
	if logger == nil {
		return nil
	}
	return Watch(when, func(ctx context.Context, r Report) error {
		if r.Logs.Len() == 0 || !logger.Enabled(ctx, slog.LevelInfo) {
			return nil
		}
		logger.LogAttrs(ctx, slog.LevelInfo, "step", attributes(r)...)
		return nil
	})
}

func attributes(r Report) []slog.Attr {
	all := []slog.Attr{
		slog.Int64(stepsField, r.Elapsed.Steps),
		slog.Int64("elapsed.samples", r.Elapsed.Samples),
		slog.Duration("elapsed.time", r.Elapsed.Time),
	}
	for _, e := range r.Logs.entries {
		all = append(all, attribute(e))
	}
	slices.SortStableFunc(all, func(a, b slog.Attr) int { return cmp.Compare(a.Key, b.Key) })
	return all
}

func attribute(e Entry) slog.Attr {
	v, err := e.Value.Float()
	if err == nil {
		return slog.Float64(e.Path(), v)
	}
	if p, ok := e.Value.(Payload); ok {
		if v, err := p.Any(); err == nil {
			return slog.Any(e.Path(), brief(v))
		}
	}
	return slog.String(e.Path(), err.Error())
}

// brief gives an image by its size: a line is no place for pixels.
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
