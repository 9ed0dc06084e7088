package flaxlike

import (
	"context"
	"fmt"

	"github.com/lazo-ml/lazo/loop"
)

// epochEnd calls [Fit.OnEpochEnd], behind the epoch's validations.
func (f Fit) epochEnd(epoch loop.Steps) loop.Option {
	if f.OnEpochEnd == nil {
		return nil
	}
	return loop.Watch(loop.Every(epoch), func(_ context.Context, report loop.Report) error {
		var figures loop.Logs
		for e := range report.Logs.All() {
			if _, whole := e.Value.(loop.Payload); whole || e.Collection == progress {
				continue
			}
			v, err := e.Value.Float()
			if err != nil {
				return fmt.Errorf("%s: %w", e.Path(), err)
			}
			figures.Set(e.Collection, e.Name, loop.Number(v))
		}
		return f.OnEpochEnd(int(report.Elapsed.Steps/int64(epoch)), figures)
	})
}
