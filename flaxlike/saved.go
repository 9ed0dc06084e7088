package flaxlike

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

const descriptionKey = "lazo.model"

// The file's own checksum covers the elements alone.
const descriptionSum = "lazo.model_crc32c"

// Fields may be added; a changed meaning needs a new number. A calibration or thresholds need the second version, which
// an older lazo refuses.
const (
	descriptionVersion = 1
	decisionVersion    = 2
)

type description struct {
	Version       int                 `json:"version"`
	Network       *config             `json:"network,omitempty"`
	Code          string              `json:"code,omitempty"`
	Inputs        []described         `json:"inputs"`
	Policy        *optim.Policy       `json:"policy,omitempty"`
	Losses        []judge             `json:"losses,omitempty"`
	InnerLosses   bool                `json:"inner_losses,omitempty"`
	Metrics       []judge             `json:"metrics,omitempty"`
	SampleWeights string              `json:"sample_weights,omitempty"`
	ClassWeights  map[int]float64     `json:"class_weights,omitempty"`
	Optimizer     string              `json:"optimizer,omitempty"`
	Rate          float64             `json:"rate,omitempty"`
	BatchSize     int                 `json:"batch_size"`
	Seed          int64               `json:"seed,omitempty"`
	Classes       map[string][]string `json:"classes,omitempty"`
	Preparation   json.RawMessage     `json:"preparation,omitempty"`
	Card          Card                `json:"card"`

	Calibrations map[string][]decision.Calibration `json:"calibrations,omitempty"`
	Thresholds   map[string][]float64              `json:"thresholds,omitempty"`
	// Outputs with outdated calibration or thresholds.
	OldCalibrations []string `json:"outdated_calibrations,omitempty"`
	OldThresholds   []string `json:"outdated_thresholds,omitempty"`
}

type described struct {
	Name string       `json:"name"`
	Type dtypes.DType `json:"type"`
	Dims []int        `json:"dims"`
}

type judge struct {
	Name      string  `json:"name"`
	Code      bool    `json:"code,omitempty"` // a function, or a value of package metrics
	Output    string  `json:"output,omitempty"`
	Label     string  `json:"label,omitempty"`
	Weight    float64 `json:"weight,omitempty"`
	Off       bool    `json:"off,omitempty"`
	Weighted  bool    `json:"weighted,omitempty"`
	Smoothing float64 `json:"smoothing,omitempty"`
}

func judgesOf(losses []Loss) (judges []judge) {
	for _, l := range losses {
		judges = append(judges, judge{Name: l.Name, Code: l.Func != nil, Output: l.Output, Label: l.Label, Weight: l.Weight, Off: l.Off, Smoothing: l.Smoothing})
	}
	return judges
}

func (m *Model) description(now int64) description {
	s := &m.set
	d := description{Version: descriptionVersion, Policy: s.policy, InnerLosses: s.innerLosses, SampleWeights: s.weights, ClassWeights: s.classWeights,
		Optimizer: s.optimizerName, Rate: s.rate, BatchSize: s.batchSize, Seed: s.seed, Classes: s.classes, Preparation: s.preparation, Card: m.card(now)}
	if rate, err := m.state.LearningRate(); err == nil && float32(rate) != float32(s.rate) && s.optimizerName != "" {
		d.Rate = decimal(rate)
	}
	c, err := writing{}.config(m.network, "")
	if d.Network = &c; err != nil {
		d.Network, d.Code = nil, err.Error()
	}
	m.seen.mu.Lock()
	d.Inputs = m.seen.described
	d.decide(m.seen, now)
	if m.seen.optimizer != nil || s.noTraining != nil {
		d.Optimizer, d.Rate = "", 0
	}
	m.seen.mu.Unlock()
	if d.Losses = s.fileLosses; d.Losses == nil {
		d.Losses = judgesOf(s.losses)
	}
	if d.Metrics = s.fileMetrics; d.Metrics == nil {
		for _, f := range s.metrics {
			d.Metrics = append(d.Metrics, judge{Name: f.Name, Code: f.Func != nil || f.Metric != nil, Output: f.Output, Label: f.Label, Weighted: f.Weighted})
		}
	}
	return d
}

func (m *Model) describe(now int64) (string, error) {
	d := m.description(now)
	d.Card.Versions = m.state.Versions()
	for name, path := range map[string]string{"lazo": "github.com/lazo-ml/lazo", "GoMLX": "github.com/gomlx/gomlx"} {
		d.Card.Versions[name] = moduleVersion(path)
	}
	d.Card.ClassWeights, d.Card.SampleWeights, d.Card.Saved = nil, "", nil // the weights are in d
	if m.set.clock != nil {
		now := m.set.clock().UTC().Truncate(time.Second)
		d.Card.Saved = &now
	}
	text, err := json.Marshal(d)
	return string(text), err
}

func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range append(info.Deps, &info.Main) {
			if module.Path == path && module.Replace == nil && module.Version != "" {
				return module.Version
			}
		}
	}
	return "(devel)"
}

// Open makes a model of a file of [Model.Save]: the network, its values, losses and metrics by name, the policy, class
// names and the card. It lacks the optimizer's state.
//
// Options are those of [New]. Losses, metrics, an optimizer or a policy replace those of the file. Code is not in the
// file: give custom layers by [WithLayer], a network by [WithNetwork], functions of losses and metrics to evaluate and
// train, and an optimizer without a name to train.
//
// A file of values alone, by another program or an older lazo, is an error: see [Model.Load].
func Open(ctx context.Context, path string, options ...Option) (*Model, error) {
	m, err := openFile(ctx, path, options)
	if err != nil {
		return nil, fmt.Errorf("flaxlike: open %s: %w", path, graphs.Inner(err))
	}
	return m, nil
}

func openFile(ctx context.Context, path string, options []Option) (*Model, error) {
	if err := shield.Context(ctx); err != nil {
		return nil, err
	}
	content, d, err := readModel(path)
	if err != nil {
		return nil, err
	}
	m, err := newModel(ctx, nil, append(slices.Clone(options), d.fill))
	if err != nil {
		return nil, err
	}
	if err := m.build(ctx, d, content); err != nil {
		return nil, errors.Join(fmt.Errorf("the network of the file: %w", graphs.Inner(err)), m.Close())
	}
	if err := m.seen.decide(d); err != nil {
		return nil, errors.Join(fmt.Errorf("the file: %w", err), m.Close())
	}
	m.seen.carry(d.Card)
	return m, nil
}

// build sets the values before it creates the variables: missing ones allocate no memory.
func (m *Model) build(ctx context.Context, d description, content *checkpoint.Checkpoint) error {
	err := m.state.Transfer(ctx, content, func(name string) string {
		if of := short(name); of != name {
			return of
		}
		return ""
	})
	if err == nil {
		err = m.init(ctx, d.inputs)
	}
	if err != nil {
		return unlike(err, content)
	}
	_, err = m.needed(content)
	return err
}

func readModel(path string) (_ *checkpoint.Checkpoint, d description, err error) {
	content, metadata, err := readTensors(path)
	if err != nil {
		return nil, d, err
	}
	text, ok := metadata[descriptionKey]
	if !ok {
		return nil, d, errors.New("the file has values of variables, but no model: make one by New with its network, and give it the values by Load")
	}
	if sum := safetensors.Checksum(0).Update([]byte(text)).String(); sum != metadata[descriptionSum] {
		return nil, d, fmt.Errorf("%w: the file's description of the model has %s, expected %q by the file", safetensors.ErrChecksum, sum, metadata[descriptionSum])
	}
	d, err = readDescription(text)
	return content, d, err
}

func readDescription(text string) (d description, err error) {
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return d, fmt.Errorf("the file's description of the model: %w", err)
	}
	if d.Version != descriptionVersion && d.Version != decisionVersion {
		return d, fmt.Errorf("the file's description of the model has version %d, expected %d or %d: it was saved by another version of lazo", d.Version, descriptionVersion, decisionVersion)
	}
	for name, thresholds := range d.Thresholds {
		if err := checkThresholds(thresholds); err != nil {
			return d, fmt.Errorf("the file's description of output %q: %w", name, err)
		}
	}
	for name, calibrations := range d.Calibrations {
		for _, c := range calibrations {
			if err := c.Check(); err != nil {
				return d, fmt.Errorf("the file's description of output %q: %w", name, graphs.Inner(err))
			}
		}
	}
	return d, nil
}

// decide requires s.mu.
func (d *description) decide(s *seen, now int64) {
	if len(s.calibrations)+len(s.thresholds) == 0 {
		return
	}
	d.Version, d.Calibrations, d.Thresholds = decisionVersion, valuesOf(s.calibrations), valuesOf(s.thresholds)
	d.OldCalibrations, d.OldThresholds = outdated(s.calibrations, now), outdated(s.thresholds, now)
}

func outdated[T any](of map[string]fitted[T], now int64) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if of[name].at != now {
			names = append(names, name)
		}
	}
	return names
}

func (s *seen) decide(d description) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := func(old []string, name string) int64 {
		if slices.Contains(old, name) {
			return -1
		}
		return s.changes.Load()
	}
	for name, values := range d.Calibrations {
		if _, _, err := s.classesOf(name); err != nil {
			return fmt.Errorf("a calibration: %w", err)
		}
		s.calibrate(name, values, at(d.OldCalibrations, name))
	}
	for name, values := range d.Thresholds {
		if _, _, err := s.classesOf(name); err != nil {
			return fmt.Errorf("thresholds: %w", err)
		}
		s.setThresholds(name, values, at(d.OldThresholds, name))
	}
	return nil
}

func (d *description) inputs() ([]strategies.Input, error) {
	var inputs []strategies.Input
	for _, in := range d.Inputs {
		size := 1
		for _, n := range in.Dims {
			if n < 1 || n > math.MaxInt32/size {
				return nil, fmt.Errorf("the input %q is %v, expected lengths of 1 and up, and at most %d numbers", in.Name, in.Dims, math.MaxInt32)
			}
			size *= n
		}
		if !in.Type.IsSupported() {
			return nil, fmt.Errorf("the input %q has the unknown dtype %v", in.Name, in.Type)
		}
		inputs = append(inputs, strategies.Input{Name: in.Name, Shape: shapes.Make(in.Type, in.Dims...)})
	}
	return inputs, nil
}

func (d *description) fill(s *settings) error {
	if s.initializer != nil {
		return errors.New("WithInitializer: all kernels come from the file, so it would have no effect: leave it out")
	}
	if s.network == nil {
		if d.Network == nil {
			return fmt.Errorf("the network is code, and the file does not have it: %s\n  give Open WithNetwork with the network that the model was made with", d.Code)
		}
		r := reading{own: s.layers, asked: map[string]bool{}}
		var err error
		if s.network, err = r.layer(*d.Network); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(s.layers)) {
			if !r.asked[name] {
				return fmt.Errorf("WithLayer %q: the file's network has no such custom layer", name)
			}
		}
	} else if len(s.layers) > 0 {
		return errors.New("WithLayer and WithNetwork: expected one of them")
	}
	code := func(kind, name string) error {
		return fmt.Errorf("the %s %q is code, and the file does not have it: give Open With%s", kind, name, map[string]string{"loss": "Loss", "metric": "Metrics"}[kind])
	}
	if len(s.losses) == 0 && !s.innerLosses {
		s.innerLosses, s.fileLosses = d.InnerLosses, d.Losses
		for _, l := range d.Losses {
			if l.Code {
				s.noTests = code("loss", l.Name)
				continue
			}
			if err := WithLoss(Loss{Name: l.Name, Output: l.Output, Label: l.Label, Weight: l.Weight, Off: l.Off, Smoothing: l.Smoothing})(s); err != nil {
				return err
			}
		}
	}
	if len(s.metrics) == 0 {
		s.fileMetrics = d.Metrics
		for _, f := range d.Metrics {
			if f.Code {
				if s.noTests == nil {
					s.noTests = code("metric", f.Name)
				}
				continue
			}
			if err := WithMetrics(Metric{Name: f.Name, Output: f.Output, Label: f.Label, Weighted: f.Weighted})(s); err != nil {
				return err
			}
		}
	}
	if s.optimizer == nil && s.optimizerName == "" {
		if d.Optimizer == "" {
			s.noTraining = errors.New("the optimizer has no name, and the file does not have it: give Open WithOptimizer, or the model one by SetOptimizer")
		} else if err := WithOptimizer(d.Optimizer)(s); err != nil {
			return err
		}
		if s.rate == 0 && d.Rate != 0 {
			if err := WithLearningRate(d.Rate)(s); err != nil {
				return err
			}
		}
	}
	if s.weights == "" {
		s.weights = d.SampleWeights
	}
	if s.classWeights == nil && len(d.ClassWeights) > 0 {
		if err := WithClassWeights(d.ClassWeights)(s); err != nil {
			return err
		}
	}
	if s.policy == nil {
		s.policy = d.Policy
	}
	if s.batchSize == 0 {
		if err := WithBatchSize(d.BatchSize)(s); err != nil {
			return err
		}
	}
	if s.seed == 0 {
		s.seed = d.Seed
	}
	if s.classes == nil {
		s.classes, s.named = d.Classes, "the file has the names of"
		s.namedHint = "\n  for a network with other classes give Open WithClasses, with the names of all of them"
	}
	for output, given := range s.classes {
		own := d.Classes[output]
		for key, names := range d.Classes {
			if own == nil && len(d.Classes) == 1 && (output == "" || key == "") {
				own = names
			}
		}
		if at := moved(own, given); at >= 0 && !s.numbers(output) {
			return fmt.Errorf("WithClasses names the classes %q, and the file %q, in whose order the weights were trained: %q is class %d by WithClasses, and %d in the "+
				"file\n  leave WithClasses out, or give it other names for the same classes in the file's order; for a file with wrong names make a model by New with "+
				"its network and the right names, and give it the weights by Load", given, own, given[at], at, slices.Index(own, given[at]))
		}
	}
	if s.preparation == nil {
		s.preparation = d.Preparation
	}
	if len(d.Preparation) > 0 && !sameJSON(s.preparation, d.Preparation) {
		return errors.New("WithPreparation: the file has another preparation, which made the fields that the weights were trained on: " +
			"leave WithPreparation out, and get the file's from Model.Describe\n  to use another one, make a model by New with its network, give it the weights by Load, and train it")
	}
	return nil
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
