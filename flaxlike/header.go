package flaxlike

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/flaxlike/decision"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

const headerKey = "lazo.model"

// The file's own checksum covers the elements alone.
const headerSum = "lazo.model_crc32c"

// A changed meaning needs a new number. An older lazo refuses the second, for calibrations and thresholds.
const (
	headerVersion   = 1
	decisionVersion = 2
)

type header struct {
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

	Calibrations    map[string][]decision.Calibration `json:"calibrations,omitempty"`
	Thresholds      map[string][]float64              `json:"thresholds,omitempty"`
	OldCalibrations []string                          `json:"outdated_calibrations,omitempty"`
	OldThresholds   []string                          `json:"outdated_thresholds,omitempty"`
}

func (m *Model) header(now int64) header {
	s := &m.set
	d := header{Version: headerVersion, Policy: s.policy, InnerLosses: s.innerLosses, SampleWeights: s.weights, ClassWeights: s.classWeights,
		Optimizer: s.optimizerName, Rate: s.rate, BatchSize: s.batchSize, Seed: s.seed, Classes: m.classNames(), Card: m.card(now)}
	if s.preparation != nil {
		d.Preparation, _ = json.Marshal(s.preparation) // WithPreparation has tried it
	}
	if rate, err := m.state.LearningRate(); err == nil && float32(rate) != float32(s.rate) && s.optimizerName != "" {
		d.Rate = decimal(rate)
	}
	c, err := writing{}.config(m.network, "")
	if err == nil {
		err = c.check()
	}
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

func (m *Model) card(now int64) Card {
	m.seen.mu.Lock()
	c, fitted, evaluated := m.seen.card, m.seen.fitted, m.seen.evaluated
	c.Untrained = m.seen.origin == origin{} || c.Untrained && m.seen.origin.carried
	m.seen.mu.Unlock()
	c.Fields, c.Fit, c.Evaluated = slices.Clone(c.Fields), fitted.of(now), evaluated.of(now)
	c.Versions = maps.Clone(c.Versions)
	c.ClassWeights, c.SampleWeights = maps.Clone(m.set.classWeights), m.set.weights
	return c
}

func (m *Model) describe(now int64) (string, error) {
	d := m.header(now)
	d.Card.Versions = m.state.Versions()
	for name, path := range map[string]string{"lazo": "github.com/lazo-ml/lazo", "GoMLX": "github.com/gomlx/gomlx"} {
		d.Card.Versions[name] = moduleVersion(path)
	}
	d.Card.ClassWeights, d.Card.SampleWeights, d.Card.Saved = nil, "", nil
	if m.set.clock != nil {
		now := m.set.clock().UTC().Truncate(time.Second)
		d.Card.Saved = &now
	}
	text, err := json.Marshal(d)
	return string(text), err
}

const unknownChange = math.MinInt64

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

func readModel(path string) (_ *checkpoint.Checkpoint, d header, err error) {
	content, metadata, err := readTensors(path)
	if err != nil {
		return nil, d, err
	}
	text, ok := metadata[headerKey]
	if !ok {
		return nil, d, errors.New("the file has values of variables, but no model: make one by New with its network, and give it the values by Load")
	}
	if sum := safetensors.Checksum(0).Update([]byte(text)).String(); sum != metadata[headerSum] {
		return nil, d, fmt.Errorf("%w: the file's description of the model has %s, expected %s by the file", safetensors.ErrChecksum, sum, listed.Quoted(metadata[headerSum]))
	}
	d, err = readHeader(text)
	return content, d, err
}

func readHeader(text string) (d header, err error) {
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return d, fmt.Errorf("the file's description of the model: %w", err)
	}
	if d.Version != headerVersion && d.Version != decisionVersion {
		return d, fmt.Errorf("the file's description of the model has version %d, expected %d or %d: it was saved by another version of lazo", d.Version, headerVersion, decisionVersion)
	}
	if d.Network != nil {
		if err := d.Network.check(); err != nil {
			return d, fmt.Errorf("the file's description of the network: %w", err)
		}
	}
	for name, thresholds := range d.Thresholds {
		if err := checkThresholds(thresholds); err != nil {
			return d, fmt.Errorf("the file's description of output %s: %w", listed.Quoted(name), err)
		}
	}
	for name, calibrations := range d.Calibrations {
		for _, c := range calibrations {
			if err := c.Check(); err != nil {
				return d, fmt.Errorf("the file's description of output %s: %w", listed.Quoted(name), graphs.Inner(err))
			}
		}
	}
	return d, nil
}

// decide requires s.mu.
func (d *header) decide(s *seen, now int64) {
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

func valuesOf[T any](of map[string]fitted[T]) map[string][]T {
	values := map[string][]T{}
	for name, f := range of {
		values[name] = slices.Clone(f.values)
	}
	return values
}

func (d *header) inputs() ([]strategies.Input, error) {
	var inputs []strategies.Input
	for _, in := range d.Inputs {
		size := 1
		for _, n := range in.Dims {
			if n < 1 || n > math.MaxInt32/size {
				return nil, fmt.Errorf("the input %s is %s, expected lengths of 1 and up, and at most %d numbers", listed.Quoted(in.Name), listed.Quoted(fmt.Sprint(in.Dims)), math.MaxInt32)
			}
			size *= n
		}
		if !in.Type.IsSupported() {
			return nil, fmt.Errorf("the input %s has the unknown dtype %v", listed.Quoted(in.Name), in.Type)
		}
		inputs = append(inputs, strategies.Input{Name: in.Name, Shape: shapes.Make(in.Type, in.Dims...)})
	}
	return inputs, nil
}
