package managed

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/managed/internal/store"
	"github.com/lazo-ml/lazo/xla/export"
)

// Exported adapts a loaded model to package serve, safe for concurrent use.
type Exported struct{ Model *export.Model }

// Answer returns the outputs by name.
func (e Exported) Answer(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
	outputs, err := e.predict(batch)
	if err != nil {
		return nil, fmt.Errorf("managed: predict: %w", graphs.Inner(err))
	}
	return outputs, nil
}

func (e Exported) predict(batch data.Batch) (map[string]data.Array, error) {
	if err := batch.Check(); err != nil {
		return nil, err
	}
	inputs := map[string]*tensors.Tensor{}
	for _, f := range batch.Fields {
		t, err := store.TensorOf(f.Array)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", f.Name, err)
		}
		inputs[f.Name] = t
	}
	made, err := e.Model.Run(inputs)
	if err != nil {
		return nil, err
	}
	outputs := map[string]data.Array{}
	for name, t := range made {
		if outputs[name], err = ArrayOf(t); err != nil {
			return nil, fmt.Errorf("output %q: %w", name, err)
		}
	}
	return outputs, nil
}
