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

// built gives the network's variables.
func (m *Model) built() ([]variable, error) {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	if len(m.seen.variables) == 0 {
		return nil, fmt.Errorf("%w: call Init with a batch of the shapes to come", ErrNotBuilt)
	}
	return m.seen.variables, nil
}
