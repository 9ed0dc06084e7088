package flaxlike

import (
	"errors"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/names"
)

// ErrNotBuilt is wrapped by the error about a model without a batch.
var ErrNotBuilt = errors.New("the model has no variables before its first batch")

// ErrValue is wrapped by the error about a label that is no class of the output, an index outside an nn.Embedding, a
// learning rate that is not positive, or a label or sample weight that a loss or metric refuses.
var ErrValue = errors.New("out of range")

type outsideClasses struct{}

func (outsideClasses) Error() string        { return "outside of the classes" }
func (outsideClasses) Is(target error) bool { return target == ErrValue }

// ErrNoProbabilities is wrapped by errors about an output without probabilities, as of [Prediction.Classes].
var ErrNoProbabilities = errors.New("no probabilities")

// ErrOutdated is wrapped by the error about a calibration or thresholds fitted to earlier weights, or thresholds fitted
// before a calibration.
var ErrOutdated = graphs.ErrOutdated

// ErrDataEnded is wrapped by the error of [Model.FitBatches] about batches that ended before the run.
var ErrDataEnded = errors.New("the batches ended")

var errUnknownName = names.ErrUnknown

var errNoNetwork = errors.New("the network is nil: give New a layer, such as nn.Sequential{…}, or a Functional")

func failure(err error) error { return &graphs.Failure{Package: "flaxlike", Err: err} }
