package flaxlike

import (
	"context"
	"fmt"

	"github.com/lazo-ml/lazo/loop"
)

// epochEnd calls [Fit.OnEpochEnd], after the epoch's validations.
func (f Fit) epochEnd() loop.Option {
	if f.OnEpochEnd == nil {
		return nil
	}
	return loop.Watch(eachEpoch, func(ctx context.Context, report loop.Report) error {
		figures, err := numbersOfEpoch(report.Logs)
		if err != nil {
			return err
		}
		return f.OnEpochEnd(ctx, int(report.Elapsed.Epochs), figures)
	})
}

// numbersOfEpoch are the figures of an epoch's logs that are one number each.
func numbersOfEpoch(logs loop.Logs) (figures loop.Logs, err error) {
	for e := range logs.All() {
		if !e.IsNumber() || e.Collection == progress {
			continue
		}
		v, err := e.Value.Float()
		if err != nil {
			return figures, fmt.Errorf("%s: %w", e.Path(), err)
		}
		figures.Set(e.Collection, e.Name, v)
	}
	return figures, nil
}
