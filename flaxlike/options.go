package flaxlike

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"time"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/lazo-ml/lazo/internal/names"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Option is a setting of a new model.
type Option func(*settings) error

type settings struct {
	losses        []Loss
	innerLosses   bool
	metrics       []Metric
	optimizer     *optim.Optimizer
	optimizerName string
	rate          float64
	strategy      strategies.Strategy
	plugin        []xla.Option // how the CPU's is opened where no strategy was given
	seed          int64
	batchSize     int
	weights       string // the field of the sample weights
	classWeights  map[int]float64
	policy        *optim.Policy       // nil: all in float32
	scale         *optim.LossScale    // nil: losses are not scaled
	classes       map[string][]string // by output; "" is the only one
	named         string              // what gave the classes their names, if it is not WithClasses
	namedHint     string
	preparation   json.RawMessage
	namesClasses  namesClasses
	clock         func() time.Time
	initializer   model.VariableInitializer // of kernels; nil: each layer's
	// Of Open: the network, layers by their names in the file, and why the model cannot be tested or trained.
	network             nn.Layer
	layers              map[string]nn.Layer
	noTests, noTraining error
}

// WithLoss adds losses, which are summed up: names, see losses.Named, or [Loss] values, which have a function, an
// output or a weight of their own.
func WithLoss[L string | Loss](losses ...L) Option {
	list := make([]Loss, len(losses))
	for i, l := range losses {
		switch l := any(l).(type) {
		case string:
			list[i] = Loss{Name: l}
		case Loss:
			list[i] = l
		}
	}
	return func(s *settings) error {
		for _, l := range list {
			if err := l.check(); err != nil {
				return err
			}
		}
		s.losses = append(s.losses, list...)
		return nil
	}
}

// WithInnerLosses says that the network reports its losses itself, by managed.AddLoss, as a variational autoencoder
// may; without it a model that trains needs a loss.
func WithInnerLosses() Option {
	return func(s *settings) error { s.innerLosses = true; return nil }
}

// WithMetrics adds metrics: [Metric] values, or names, Keras's or short ones: accuracy, binary_accuracy,
// top_5_accuracy, precision, recall, f1, auc, average_precision, mean_iou, mse, rmse, mae, r2, cosine_similarity,
// pearson, concordance, pearson_correlation, concordance_correlation, crossentropy, perplexity; and, as means of the
// losses, binary_crossentropy, categorical_crossentropy, kl_divergence, log_cosh, mape, msle, poisson, hinge,
// squared_hinge, categorical_hinge. "accuracy" is that of two classes where the output has one number an example; of
// several, and in top_5_accuracy, the likeliest class counts, and labels of several classes an example are an error:
// binary_accuracy, and precision and its like behind a sigmoid or beside binary_crossentropy, take each class by
// itself.
//
// Where two classes, or for auc and average_precision probabilities, are made of the output's numbers, these are taken
// for
//
//   - probabilities, with the border 0.5, where the output went through a sigmoid or a softmax, or its loss is dice or tversky;
//   - logits, with the border 0, next to the crossentropies and the hinges;
//   - numbers near 0 and 1, with the border 0.5, next to the other losses, as mse; auc takes what is beyond as 0 and 1.
//
// Without a loss by name this is not known, which is an error that says what to write.
func WithMetrics[M string | Metric](list ...M) Option {
	all := make([]Metric, len(list))
	for i, m := range list {
		switch m := any(m).(type) {
		case string:
			all[i] = Metric{Name: m}
		case Metric:
			all[i] = m
		}
	}
	return func(s *settings) error {
		for _, m := range all {
			switch {
			case m.Metric != nil && m.Func != nil:
				return fmt.Errorf("metric %q has both a Metric and a Func, expected one of them", m.Name)
			case m.Metric == nil && m.Func == nil:
				if _, err := names.Find("metric", m.Name, metricsByName); err != nil {
					return err
				}
			case m.Name == "":
				return errors.New("a metric of one's own needs a Name to be logged under")
			}
		}
		s.metrics = append(s.metrics, all...)
		return nil
	}
}

// WithOptimizer sets the optimizer, as optim.New or optim.GoMLX makes it, or its name: sgd, momentum, nesterov, adam
// (the default), adamw, adamax, rmsprop, adagrad, adadelta, nadam, lion, lamb, adafactor; a name has Keras's learning
// rate, see [WithLearningRate].
func WithOptimizer(optimizer any) Option {
	return func(s *settings) (err error) {
		switch o := optimizer.(type) {
		case string:
			s.optimizerName = o
			_, err = optimizerByName(o, 0)
		case *optim.Optimizer:
			if s.optimizer = o; o == nil {
				err = errors.New("the optimizer is nil")
			}
		case nil:
			err = errors.New("the optimizer is nil")
		default:
			err = fmt.Errorf("WithOptimizer was given a %T, expected a name, as \"adam\", or an optimizer, as optim.New or optim.GoMLX makes it", o)
		}
		return err
	}
}

// WithLearningRate sets the rate of an optimizer by name.
func WithLearningRate(rate float64) Option {
	return func(s *settings) error {
		if !(rate > 0) || math.IsInf(rate, 0) {
			return fmt.Errorf("the learning rate is %v, expected a positive number", rate)
		}
		s.rate = rate
		return nil
	}
}

// WithInitializer has the kernels of the network's layers begin as an initializer says: one of package nn, as
// nn.RandomNormal(0.02), or its name, as "he_normal", see nn.Initial. It is for the kernels of package nn's
// layers whose settings do not say it: not for those of a recurrence's state, biases and embeddings. A network in which
// no kernel takes it is an error.
func WithInitializer[I string | ~func(*graph.Graph, shapes.Shape) *graph.Node](initializer I) Option {
	return func(s *settings) (err error) {
		var initial model.VariableInitializer
		if v := reflect.ValueOf(initializer); v.Kind() == reflect.String {
			initial = nn.Initial(v.String())
		} else {
			initial = v.Convert(reflect.TypeFor[model.VariableInitializer]()).Interface().(model.VariableInitializer)
		}
		switch {
		case initial == nil:
			return errors.New("the initializer is nil")
		case s.initializer != nil:
			return errors.New("WithInitializer: given twice")
		}
		s.initializer = initial
		return nil
	}
}

// InstallIfMissing lets New download and install the CPU's plugin, if it is found nowhere and there is no
// [WithStrategy]; see xla.InstallIfMissing. progress, which may be nil, is called with lines for the user.
func InstallIfMissing(progress func(line string)) Option {
	return func(s *settings) error {
		s.plugin = append(s.plugin, xla.InstallIfMissing(progress))
		return nil
	}
}

// WithStrategy sets how the steps run, and on what. Without it New opens the CPU, with a plugin that must be
// installed (see [InstallIfMissing]), and [Model.Close] closes it.
func WithStrategy(strategy strategies.Strategy) Option {
	return func(s *settings) error {
		if strategy == nil {
			return errors.New("the strategy is nil: give WithStrategy one such as strategies.Jit(runtime)")
		}
		s.strategy = strategy
		return nil
	}
}

// WithSeed makes the initial parameters, the random numbers of steps and the order of the data a function of the seed;
// 0 without it.
func WithSeed(seed int64) Option { return func(s *settings) error { s.seed = seed; return nil } }

// WithBatchSize sets how many examples are in a batch, 32 without it.
func WithBatchSize(n int) Option {
	return func(s *settings) error {
		if n < 1 {
			return fmt.Errorf("the batch size is %d, expected at least 1", n)
		}
		s.batchSize = n
		return nil
	}
}

// WithSampleWeights names the field that says how much each example counts in the losses and in weighted metrics:
// floats [batch], or of more of the loss's axes. All sets that the model trains on or is tested with must have it. The
// sum of weighted losses is divided by the number of examples. A weight below 0, or not finite, is an error, and so is
// a set in which all are 0.
func WithSampleWeights(field string) Option {
	return func(s *settings) error {
		if field == "" {
			return errors.New("the field of the sample weights has no name")
		}
		s.weights = field
		return nil
	}
}

// WithClassWeights says how much the examples of a class count while training, in the losses with integer labels, and
// with labels 0 or 1 of binary_crossentropy; a class that is not named counts 1. A class that the output has not, and
// losses none of which has such labels, are an error before the first step; so are, of a set, a class that none of its
// examples has, and weights by which none of them counts.
func WithClassWeights(weights map[int]float64) Option {
	weights = maps.Clone(weights)
	return func(s *settings) error {
		if len(weights) == 0 {
			return errors.New("WithClassWeights: no class is named")
		}
		for class, w := range weights {
			if class < 0 || !(w >= 0) || w > math.MaxFloat32 {
				return fmt.Errorf("the weight of class %d is %v, expected classes and weights from 0 to what a float32 holds", class, w)
			}
		}
		s.classWeights = weights
		return nil
	}
}

// optimizerOf is what the settings ask for.
func (s *settings) optimizerOf() (*optim.Optimizer, error) {
	if s.optimizer == nil {
		s.optimizerName = cmp.Or(s.optimizerName, "adam")
		return optimizerByName(s.optimizerName, s.rate)
	}
	if s.optimizerName != "" || s.rate != 0 {
		return nil, errors.New("WithOptimizer: an optimizer brings its own rule and rate: leave its name and WithLearningRate out")
	}
	return s.optimizer, nil
}
