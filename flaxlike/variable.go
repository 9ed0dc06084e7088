package flaxlike

import (
	"errors"
	"fmt"

	"github.com/lazo-ml/lazo/metrics"
)

// variable is one of the network.
type variable struct {
	name      string
	shape     metrics.Shape
	trainable bool
}

// ErrNotBuilt is wrapped by the error about a model that has met no batch yet, so that its shapes are not known.
var ErrNotBuilt = errors.New("the model has no variables before its first batch")

func (m *Model) built() error {
	if len(m.seen.variables) == 0 {
		return fmt.Errorf("%w: call Init with a batch of the shapes to come", ErrNotBuilt)
	}
	return nil
}
