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

// Loss is a loss of a model. Only a Name that losses.Named knows, or a Func, is needed.
type Loss struct {
	// Name is that of the loss; of several, with a Func, it is the name under which it is logged. The only one is
	// logged as loss.
	Name string
	// Func is a function of package losses or of the program's own. One that gives a scalar cannot be weighed; Evaluate
	// gives a model that has one no padding, but a smaller last batch.
	Func losses.Func
	// Output is the output that is judged, and Label the field that has what it should be. A model of one output needs
	// neither: the field is "y" then. Of several outputs, each has the field of its own name.
	Output, Label string
	// Weight multiplies the loss in the sum of all; 0 stands for 1, as a field that is not set; Off
	// leaves the loss out.
	Weight float64
	// Off leaves the loss out of the sum: it is logged and trains nothing.
	Off bool
	// Smoothing takes that share of each label and spreads it over all classes evenly, while training and in tests
	// (Szegedy et al. 2016): from 0 to below 1, for crossentropies by Name, but for the masked one.
	Smoothing float64
}

// smoothing are the losses by name that have it, and whether each number of the output is two classes.
var smoothing = map[string]bool{"sparse_categorical_crossentropy": false, "categorical_crossentropy": false, "categorical_focal_crossentropy": false,
	"binary_crossentropy": true, "binary_focal_crossentropy": true}

// check finds settings that no loss has.
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
	case !(l.Smoothing >= 0 && l.Smoothing < 1): // also NaN
		return fmt.Errorf("loss %q: the smoothing is %v, expected a share from 0 to below 1", l.Name, l.Smoothing)
	case l.Smoothing > 0 && (l.Func != nil || !smooths):
		return fmt.Errorf("loss %q: it has no smoothing, expected it of one of %q by Name", l.Name, slices.Sorted(maps.Keys(smoothing)))
	}
	return nil
}

// byName is the loss that Name says, with its Smoothing.
func (l Loss) byName() losses.Func {
	f, _ := losses.Named(l.Name) // which New has checked
	if ofBatch[l.Name] {
		return func(labels, output *graph.Node) *graph.Node {
			if !outputs.From0To1(output) {
				panic(fmt.Errorf("%s takes probabilities, and nothing says that the output %s has such: end the network with "+
					"nn.Activation(\"sigmoid\") or nn.Activation(\"softmax\"); if its numbers are from 0 to 1 by other operations, end it with an nn.Func of "+
					"graph.ClipScalar(x, 0, 1), which changes none of them", l.Name, output.Shape()))
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

// logged is the name in the logs: "loss" where it is the only one, and else "<output>_loss".
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

// binaryLosses are of logits each of which is of a class and its opposite.
var binaryLosses = map[string]bool{"binary_crossentropy": true, "binary_focal_crossentropy": true}

// ofBatch are losses of the probabilities of the whole batch, in which padding must be 0.
var ofBatch = map[string]bool{"dice": true, "tversky": true}
