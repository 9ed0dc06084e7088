package flaxlike

import (
	"errors"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/names"
)

// ErrNotBuilt reports a model without a batch.
var ErrNotBuilt = errors.New("the model has no variables before its first batch")

// ErrValue reports a label that is no class of the output, an index outside an nn.Embedding, a learning rate that is
// not positive, or a label or sample weight that a loss or metric refuses.
var ErrValue = errors.New("out of range")

type outsideClasses struct{}

func (outsideClasses) Error() string        { return "outside of the classes" }
func (outsideClasses) Is(target error) bool { return target == ErrValue }

// ErrNoProbabilities reports an output without probabilities, as of [Prediction.Classes].
var ErrNoProbabilities = errors.New("no probabilities")

// ErrOutdated reports a calibration or thresholds fitted to earlier weights, or thresholds fitted before a calibration.
var ErrOutdated = graphs.ErrOutdated

// ErrDataEnded reports that the batches of [Model.FitBatches] ended before the run.
var ErrDataEnded = errors.New("the batches ended")

var errUnknownName = names.ErrUnknown

var errNoNetwork = errors.New("the network is nil: give New a layer, such as nn.Sequential{…}, or a Functional")

func failure(err error) error { return &graphs.Failure{Package: "flaxlike", Err: err} }
