package flaxlike

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/outputs"
	"github.com/lazo-ml/lazo/nn/losses"
)

// Loss is a model's loss. It needs a Name that losses.Named knows, or a Func.
type Loss struct {
	// Name is the loss's or, with a Func and several losses, the log entry's. An only loss is logged as loss.
	Name string
	// Func is of package losses or custom. It gets labels [batch] and output [batch, 1], of a Dense of one unit,
	// unchanged. A scalar cannot be weighted.
	Func losses.Func
	// Output names the output, and Label its labels' field, by default of the same name. A model with one output needs
	// neither; its label is "y".
	Output, Label string
	// Weight multiplies the loss in the sum; 0 means 1.
	Weight float64
	// Off logs the loss without training on it.
	Off bool
	// Smoothing is each label's share spread evenly over all classes, also in tests (Szegedy et al., 2016), below 1, for
	// named crossentropies except the masked one.
	Smoothing float64
	// Delta, Gamma and Alpha are losses.Settings of "huber" and the focal crossentropies, by Name; default 0.
	Delta, Gamma, Alpha float64
	// Ignore has labels that masked_sparse_categorical_crossentropy and the metrics of its Output and Label leave
	// out, besides those below 0 (Keras's ignore_class).
	Ignore []int
}

func (l Loss) numbers() losses.Settings {
	return losses.Settings{Delta: l.Delta, Gamma: l.Gamma, Alpha: l.Alpha}
}

const maskedSparse = "masked_sparse_categorical_crossentropy"

type lossKind struct {
	output          meaning
	labels          labelKind
	smooths, binary bool
	// ofBatch: it is of the whole batch: padding must be 0.
	ofBatch bool
	masks   bool
}

// meanings are in order of precedence.
type meaning int

const (
	areLogits meaning = iota
	areExclusive
	areProbabilities
	areNumbers
	areUntold
)

type labelKind int

const (
	anyLabels labelKind = iota
	classLabels
	symbolLabels    // classes, and 0 after the last
	signLabels      // -1 and 1
	countLabels     // from 0 on
	positiveLabels  // from 0 on, and no counts
	shareLabels     // from 0 to 1
	exclusiveLabels // from 0 to 1, with the sum 1
)

var lossKinds = map[string]lossKind{
	"sparse_categorical_crossentropy": {output: areExclusive, labels: classLabels, smooths: true},
	maskedSparse:                      {output: areExclusive, labels: classLabels},
	"categorical_crossentropy":        {output: areExclusive, labels: exclusiveLabels, smooths: true},
	"categorical_focal_crossentropy":  {output: areExclusive, labels: exclusiveLabels, smooths: true},
	"kl_divergence":                   {output: areExclusive, labels: exclusiveLabels},
	"ctc":                             {output: areExclusive, labels: symbolLabels, masks: true},
	"binary_crossentropy":             {output: areLogits, labels: shareLabels, smooths: true, binary: true},
	"binary_focal_crossentropy":       {output: areLogits, labels: shareLabels, smooths: true, binary: true},
	"hinge":                           {output: areLogits, labels: signLabels},
	"squared_hinge":                   {output: areLogits, labels: signLabels},
	"categorical_hinge":               {output: areLogits, labels: shareLabels},
	"dice":                            {output: areProbabilities, labels: shareLabels, ofBatch: true},
	"tversky":                         {output: areProbabilities, labels: shareLabels, ofBatch: true},
	"poisson":                         {output: areNumbers, labels: countLabels},
	"msle":                            {output: areNumbers, labels: positiveLabels},
	"mean_squared_logarithmic_error":  {output: areNumbers, labels: positiveLabels},
}

func (l Loss) kind() lossKind {
	if l.Func != nil {
		return lossKind{output: areUntold} // custom
	}
	if k, ok := lossKinds[l.Name]; ok {
		return k
	}
	return lossKind{output: areNumbers}
}

func (l Loss) check() error {
	if l.Func == nil {
		if _, err := losses.Named(l.Name, l.numbers()); err != nil {
			return err
		}
	}
	switch {
	case len(l.Ignore) > 0 && (l.Func != nil || l.Name != maskedSparse):
		return fmt.Errorf("loss %s: Ignore is %d, and only the loss %q leaves labels out: take it, or sample weights of 0", listed.Quoted(l.Name), l.Ignore, maskedSparse)
	case l.Func != nil && l.numbers() != losses.Settings{}:
		return fmt.Errorf("loss %s: it has a Func, and Delta, Gamma or Alpha, which are for losses by Name", listed.Quoted(l.Name))
	case l.Weight < 0 || math.IsNaN(l.Weight) || math.IsInf(l.Weight, 0):
		return fmt.Errorf("loss %s: the weight is %v, expected a finite number of at least 0", listed.Quoted(l.Name), l.Weight)
	case l.Off && l.Weight != 0:
		return fmt.Errorf("loss %s: it is Off and has the weight %v, expected one of them", listed.Quoted(l.Name), l.Weight)
	case !(l.Smoothing >= 0 && l.Smoothing < 1):
		return fmt.Errorf("loss %s: the smoothing is %v, expected a share from 0 to below 1", listed.Quoted(l.Name), l.Smoothing)
	case l.Smoothing > 0 && !l.kind().smooths:
		smooth := slices.DeleteFunc(slices.Sorted(maps.Keys(lossKinds)), func(name string) bool { return !lossKinds[name].smooths })
		return fmt.Errorf("loss %s: Smoothing is not supported, expected a loss with one of the Names %q", listed.Quoted(l.Name), smooth)
	}
	return nil
}

func (l Loss) counted(labels, output *graph.Node) *graph.Node {
	counts := outputs.AtLeastZero(labels, output)
	each := graph.Reshape(labels, counts.Shape().Dimensions...)
	for _, label := range l.Ignore {
		counts = graph.LogicalAnd(counts, graph.NotEqual(each, graph.Scalar(each.Graph(), each.DType(), label)))
	}
	return counts
}

func (l Loss) byName() losses.Func {
	f, _ := losses.Named(l.Name, l.numbers())
	if l.kind().ofBatch {
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
		if l.kind().labels == classLabels {
			even := graph.Neg(graph.ReduceMean(graph.LogSoftmax(output), -1))
			return graph.Add(graph.MulScalar(f(labels, output), 1-l.Smoothing), graph.MulScalar(even, l.Smoothing))
		}
		classes := 2
		if !l.kind().binary {
			outputs.SeveralClasses(l.Name, output, "binary_crossentropy")
			classes = outputs.Classes(output)
		}
		labels = outputs.Same(l.Name, labels, output)
		return f(graph.AddScalar(graph.MulScalar(labels, 1-l.Smoothing), l.Smoothing/float64(classes)), output)
	}
}

const (
	averaged = "avg_"
	trained  = "loss"
)

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

func numbersOf(l Loss, output *graph.Node) meaning {
	if l.kind().ofBatch && !outputs.From0To1(output) {
		return areUntold
	}
	return l.kind().output
}

type judge struct {
	Name      string  `json:"name"`
	Code      bool    `json:"code,omitempty"` // a function or metrics value
	Output    string  `json:"output,omitempty"`
	Label     string  `json:"label,omitempty"`
	Weight    float64 `json:"weight,omitempty"`
	Off       bool    `json:"off,omitempty"`
	Weighted  bool    `json:"weighted,omitempty"`
	Smoothing float64 `json:"smoothing,omitempty"`
	Delta     float64 `json:"delta,omitempty"`
	Gamma     float64 `json:"gamma,omitempty"`
	Alpha     float64 `json:"alpha,omitempty"`
	Ignore    []int   `json:"ignore,omitempty"`
}

func judgesOf(losses []Loss) (judges []judge) {
	for _, l := range losses {
		judges = append(judges, judge{Name: l.Name, Code: l.Func != nil, Output: l.Output, Label: l.Label, Weight: l.Weight, Off: l.Off, Smoothing: l.Smoothing,
			Delta: l.Delta, Gamma: l.Gamma, Alpha: l.Alpha, Ignore: l.Ignore})
	}
	return judges
}

const lossesInside = "those of the network"

func sayJudges(judges []judge) (lines []string) {
	for _, j := range judges {
		line := j.Name
		if j.Output != "" {
			line += " of " + j.Output
		}
		if j.Label != "" {
			line += fmt.Sprintf(" on %q", j.Label)
		}
		if j.Weight != 0 && j.Weight != 1 {
			line += fmt.Sprintf(", weight %g", j.Weight)
		}
		for i, v := range []float64{j.Smoothing, j.Delta, j.Gamma, j.Alpha} {
			if v != 0 {
				line += fmt.Sprintf(", %s %g", []string{"smoothing", "delta", "gamma", "alpha"}[i], v)
			}
		}
		if len(j.Ignore) > 0 {
			line += fmt.Sprintf(", ignore %d", j.Ignore)
		}
		if j.Off {
			line += ", off"
		}
		if j.Weighted {
			line += ", weighted"
		}
		if j.Code {
			line += " (own)"
		}
		lines = append(lines, line)
	}
	return lines
}
