package flaxlike

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"github.com/lazo-ml/lazo/loop"
)

// epochEnd calls [Fit.OnEpochEnd], behind the epoch's validations.
func (m *Model) epochEnd(f Fit, epoch loop.Steps) loop.Option {
	if f.OnEpochEnd == nil {
		return nil
	}
	return loop.Watch(loop.Every(epoch), func(ctx context.Context, report loop.Report) error {
		figures, err := numbersOfEpoch(report.Logs)
		if err != nil {
			return err
		}
		m.inEpochEnd.Store(&ctx)
		defer m.inEpochEnd.Store(nil)
		return callEpochEnd(f, int(report.Elapsed.Steps/int64(epoch)), figures)
	})
}

// callEpochEnd has a name of its own, by which [Model.within] finds it on the stack.
//
//go:noinline
func callEpochEnd(f Fit, epoch int, figures loop.Logs) error { return f.OnEpochEnd(epoch, figures) }

// within is the context for a run of this model that may be made in [Fit.OnEpochEnd], which is given none: the loop
// tells by it that the run is one within the training, as it must be where several processes train together. It ends
// when ctx does. A goroutine that OnEpochEnd starts is beside the training, and not within.
func (m *Model) within(ctx context.Context) context.Context {
	outer := m.inEpochEnd.Load()
	if outer == nil || !calledBy("flaxlike.callEpochEnd") {
		return ctx
	}
	return inner{ctx, *outer}
}

// inner has the values of another context too.
type inner struct {
	context.Context
	outer context.Context
}

// Value is that of the context itself, else that of the outer one.
func (c inner) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.outer.Value(key)
}

// calledBy tells whether a function whose name ends so is on the stack.
func calledBy(name string) bool {
	var calls [64]uintptr
	for skip := 2; ; skip += len(calls) {
		n := runtime.Callers(skip, calls[:])
		if n == 0 {
			return false
		}
		frames := runtime.CallersFrames(calls[:n])
		for {
			f, more := frames.Next()
			if strings.HasSuffix(f.Function, name) {
				return true
			}
			if !more {
				break
			}
		}
	}
}

// numbersOfEpoch are the figures of an epoch's logs that are one number each.
func numbersOfEpoch(logs loop.Logs) (figures loop.Logs, err error) {
	for e := range logs.All() {
		if _, whole := e.Value.(loop.Payload); whole || e.Collection == progress {
			continue
		}
		v, err := e.Value.Float()
		if err != nil {
			return figures, fmt.Errorf("%s: %w", e.Path(), err)
		}
		figures.Set(e.Collection, e.Name, loop.Number(v))
	}
	return figures, nil
}
