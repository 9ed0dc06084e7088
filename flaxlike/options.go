package flaxlike

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/data/tables"
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
	plugin        []xla.Option
	seed          int64
	batchSize     int
	weights       string
	classWeights  map[int]float64
	policy        *optim.Policy
	classes       map[string][]string
	named         string
	namedHint     string
	preparation   *tables.Preparation
	clock         func() time.Time
	initializer   model.VariableInitializer
	// For Open. The errors say why the model cannot be tested or trained.
	network             nn.Layer
	layers              map[string]nn.Layer
	noTests, noTraining error
	// Of the file, with code, which losses and metrics lack.
	fileLosses, fileMetrics []judge
}

// WithLoss adds losses, whose sum is trained. A string is a name of losses.Named.
func WithLoss[L string | Loss](losses ...L) Option {
	list := make([]Loss, len(losses))
	for i, l := range losses {
		switch l := any(l).(type) {
		case string:
			list[i] = Loss{Name: l}
		case Loss:
			list[i] = l
		}
		list[i].Ignore = slices.Clone(list[i].Ignore)
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

// WithInnerLosses allows a model without losses, whose network reports them by managed.AddLoss. Weights of examples and
// classes do not apply to these.
func WithInnerLosses() Option {
	return func(s *settings) error { s.innerLosses = true; return nil }
}

// WithMetrics adds metrics: [Metric] values, or names. The names are accuracy, binary_accuracy, top_5_accuracy,
// precision, recall, f1, auc, average_precision, mean_iou, mse, rmse, mae, r2, cosine_similarity, pearson,
// concordance, pearson_correlation, concordance_correlation, crossentropy, perplexity, with their other names in Keras
// and scikit-learn; and the mean losses
// binary_crossentropy, categorical_crossentropy, kl_divergence, log_cosh, mape, msle, poisson, hinge, squared_hinge,
// categorical_hinge.
//
// "accuracy" is binary for an output of one number per example. Otherwise it compares the likeliest class, and
// refuses labels with several classes: use binary_accuracy, or precision, recall and f1 with a sigmoid or
// binary_crossentropy.
//
// The metrics of two classes, auc and average_precision read the output as
//
//   - probabilities, with threshold 0.5, after a sigmoid or softmax, or with the loss dice or tversky;
//   - logits, with threshold 0, with a crossentropy or a hinge;
//   - numbers near 0 and 1, with threshold 0.5, with other losses like mse; auc clips them.
//
// Without a loss by name this is an error. auc and average_precision have 200 thresholds, as in Keras.
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
				return errors.New("a custom metric needs a Name, under which it is logged")
			}
		}
		s.metrics = append(s.metrics, all...)
		return nil
	}
}

// WithInitializer sets the initializer of kernels: of package nn, like nn.RandomNormal(0.02), or a name of nn.Initial,
// like "he_normal". It applies to layers of package nn without a Kernel setting, as nn.Kernels. It is an error if no
// kernel takes it.
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

// InstallIfMissing lets New install the CPU plugin if there is none and no [WithStrategy], as xla.InstallIfMissing.
func InstallIfMissing(progress func(line string)) Option {
	return func(s *settings) error {
		s.plugin = append(s.plugin, xla.InstallIfMissing(progress))
		return nil
	}
}

// WithStrategy sets how and on which devices the steps run, by default on the CPU.
func WithStrategy(strategy strategies.Strategy) Option {
	return func(s *settings) error {
		if strategy == nil {
			return errors.New("the strategy is nil: give WithStrategy one such as strategies.Jit(runtime)")
		}
		s.strategy = strategy
		return nil
	}
}

// WithSeed sets the seed of initial parameters, random numbers and the data's order, default 0.
func WithSeed(seed int64) Option { return func(s *settings) error { s.seed = seed; return nil } }

// WithBatchSize sets the number of examples in a batch, default 32.
func WithBatchSize(n int) Option {
	return func(s *settings) error {
		if n < 1 {
			return fmt.Errorf("the batch size is %d, expected at least 1", n)
		}
		s.batchSize = n
		return nil
	}
}

// WithSampleWeights names the field with each example's weight in losses and weighted metrics: floats [batch], or
// with more leading axes of the loss, as [batch, positions] for a sequence. All training and test sets need it. The
// sum of weighted losses is divided by the number of examples. Negative weights, and a set with all weights 0, are
// errors.
func WithSampleWeights(field string) Option {
	return func(s *settings) error {
		if field == "" {
			return errors.New("the field of the sample weights has no name")
		}
		s.weights = field
		return nil
	}
}

// WithClassWeights sets the weight of classes in training, default 1, for integer labels and for labels 0 and 1 of
// binary_crossentropy. A class that the output or the set lacks is an error, as are several outputs.
func WithClassWeights(weights map[int]float64) Option {
	weights = maps.Clone(weights)
	return func(s *settings) error {
		if len(weights) == 0 {
			return errors.New("WithClassWeights: no class is named")
		}
		for class, w := range weights {
			if class < 0 || !(w >= 0) || w > math.MaxFloat32 {
				return fmt.Errorf("the weight of class %d is %v, expected a class of 0 or more, and a weight from 0 to the largest float32", class, w)
			}
		}
		s.classWeights = weights
		return nil
	}
}

func (s *settings) parts() map[string]float64 {
	if len(s.losses) < 2 {
		return nil
	}
	parts := map[string]float64{}
	for _, l := range s.losses {
		if !l.Off {
			parts[l.logged(false)] = cmp.Or(l.Weight, 1)
		}
	}
	return parts
}
