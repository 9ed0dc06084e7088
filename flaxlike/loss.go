package flaxlike

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/outputs"
	"github.com/lazo-ml/lazo/losses"
)

// Loss is a loss of a model. It needs a Name that losses.Named knows, or a Func.
type Loss struct {
	// Name is the name of the loss, or, with a Func and several losses, of the log entry. An only loss is logged as
	// loss.
	Name string
	// Func is a function of package losses or a custom one. If it returns a scalar, it cannot be weighted, and Evaluate
	// uses a smaller last batch in place of padding.
	Func losses.Func
	// Output is the name of the output, and Label the field of its labels. A model with one output needs neither, and
	// its label is "y". Of several outputs, each has a label of its own name by default.
	Output, Label string
	// Weight multiplies the loss in the sum; 0 means 1. To leave the loss out set Off.
	Weight float64
	// Off logs the loss without training on it.
	Off bool
	// Smoothing is the share of each label that is spread evenly over all classes, in training and in tests (Szegedy et
	// al., 2016): at least 0, below 1. It is for crossentropies by Name, except the masked one.
	Smoothing float64
}

// smoothing has the losses that allow it. The value is true if each number of the output is of two classes.
var smoothing = map[string]bool{"sparse_categorical_crossentropy": false, "categorical_crossentropy": false, "categorical_focal_crossentropy": false,
	"binary_crossentropy": true, "binary_focal_crossentropy": true}

func (l Loss) check() error {
	if l.Func == nil {
		if _, err := losses.Named(l.Name); err != nil {
			return err
		}
	}
	_, smooths := smoothing[l.Name]
	switch {
	case l.Weight < 0 || math.IsNaN(l.Weight) || math.IsInf(l.Weight, 0):
		return fmt.Errorf("loss %q: the weight is %v, expected a finite number of at least 0", l.Name, l.Weight)
	case l.Off && l.Weight != 0:
		return fmt.Errorf("loss %q: it is Off and has the weight %v, expected one of them", l.Name, l.Weight)
	case !(l.Smoothing >= 0 && l.Smoothing < 1):
		return fmt.Errorf("loss %q: the smoothing is %v, expected a share from 0 to below 1", l.Name, l.Smoothing)
	case l.Smoothing > 0 && (l.Func != nil || !smooths):
		return fmt.Errorf("loss %q: Smoothing is not supported, expected a loss with one of the Names %q", l.Name, slices.Sorted(maps.Keys(smoothing)))
	}
	return nil
}

func (l Loss) byName() losses.Func {
	f, _ := losses.Named(l.Name)
	if ofBatch[l.Name] {
		return func(labels, output *graph.Node) *graph.Node {
			if !outputs.From0To1(output) {
				panic(fmt.Errorf("%s takes probabilities, and the output %s is not known to have them: end the network with "+
					"nn.Activation(\"sigmoid\") or nn.Activation(\"softmax\"); if its numbers are from 0 to 1 by other operations, end it with an nn.Func of "+
					"graph.ClipScalar(x, 0, 1), which changes no value", l.Name, output.Shape()))
			}
			return f(labels, output)
		}
	}
	if l.Smoothing == 0 {
		return f
	}
	return func(labels, output *graph.Node) *graph.Node {
		if l.Name == "sparse_categorical_crossentropy" {
			even := graph.Neg(graph.ReduceMean(graph.LogSoftmax(output), -1))
			return graph.Add(graph.MulScalar(f(labels, output), 1-l.Smoothing), graph.MulScalar(even, l.Smoothing))
		}
		classes := 2
		if !smoothing[l.Name] {
			outputs.SeveralClasses(l.Name, output, "binary_crossentropy")
			classes = outputs.Classes(output)
		}
		labels = outputs.Same(l.Name, labels, output)
		return f(graph.AddScalar(graph.MulScalar(labels, 1-l.Smoothing), l.Smoothing/float64(classes)), output)
	}
}

func (l Loss) logged(single bool) string {
	switch {
	case single:
		return trained
	case l.Func != nil && l.Name != "":
		return l.Name
	case l.Output != "":
		return l.Output + "_loss"
	case l.Name != "":
		return l.Name
	}
	return "loss"
}

const maskedSparse = "masked_sparse_categorical_crossentropy"

var binaryLosses = map[string]bool{"binary_crossentropy": true, "binary_focal_crossentropy": true}

// ofBatch are losses of the whole batch, in which padding must be 0.
var ofBatch = map[string]bool{"dice": true, "tversky": true}
