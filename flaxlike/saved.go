package flaxlike

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/managed"
)

// Save writes the model to one file, from which [Open] makes it in any program: the network's variables and, as
// metadata, the network with its settings, losses and metrics by name, the policy, class names, the data's preparation
// and the [Card]. The format is safetensors; variables have names like "0/kernel".
//
// The file lacks the optimizer's state, which a checkpoint has, and a network that is code without a name. An
// existing file is replaced atomically.
func (m *Model) Save(path string) error {
	if err := m.save(path); err != nil {
		return fmt.Errorf("flaxlike: save %s: %w", path, graphs.Inner(err))
	}
	return nil
}

func (m *Model) save(path string) error {
	of := m.seen.changes.Load()
	content, err := m.content()
	if err != nil {
		return err
	}
	if of != m.seen.changes.Load() { // weights read during training are unknown
		of = unknownChange
	}
	described, err := m.describe(of)
	if err != nil {
		return err
	}
	var tensors []safetensors.Tensor
	values := map[string][]byte{}
	for _, t := range content.Tensors {
		tensors = append(tensors, safetensors.Tensor{Name: t.Name, DType: t.DType, Dims: t.Dims})
		values[t.Name] = t.Data
	}
	safetensors.Sort(tensors)
	var sum safetensors.Checksum // precedes the elements in the file
	for _, t := range tensors {
		sum = sum.Update(values[t.Name])
	}
	return regular.Replace(path, func(f *os.File) error {
		buffered := bufio.NewWriter(f)
		w, err := safetensors.NewWriter(buffered, tensors, map[string]string{"format": "lazo", safetensors.ChecksumKey: sum.String(),
			headerKey: described, headerSum: safetensors.Checksum(0).Update([]byte(described)).String()})
		if err != nil {
			return err
		}
		for _, t := range tensors {
			if _, err := w.Write(t.Name, values[t.Name]); err != nil {
				return err
			}
		}
		return errors.Join(w.Close(), buffered.Flush())
	})
}

// Open makes a model of a file of [Model.Save].
//
// Options are those of [New]. Losses, metrics, an optimizer or a policy replace the file's. Code is not in the file:
// give custom layers by [WithLayer], a network by [WithNetwork], functions of losses and metrics, and an optimizer
// without a name to train.
//
// A file of values alone is an error ([Model.Load] reads it).
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
func (m *Model) build(ctx context.Context, d header, content *checkpoint.Checkpoint) error {
	err := m.state.Transfer(ctx, content, func(name string) string {
		if of := shortName(name); of != name {
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

func (s *seen) decide(d header) error {
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

func (s *seen) carry(c Card) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.changes.Load()
	s.origin.carried = true
	s.fitted, s.evaluated = figures{at: now, found: c.Fit}, figures{at: now, found: c.Evaluated}
	c.Fit, c.Evaluated = nil, nil
	s.card = c
}

func (d *header) fill(s *settings) error {
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
		return fmt.Errorf("the %s %s is code, and the file does not have it: give Open With%s", kind, listed.Quoted(name), map[string]string{"loss": "Loss", "metric": "Metrics"}[kind])
	}
	if len(s.losses) == 0 && !s.innerLosses {
		s.innerLosses, s.fileLosses = d.InnerLosses, d.Losses
		for _, l := range d.Losses {
			if l.Code {
				s.noTests = code("loss", l.Name)
				continue
			}
			if err := WithLoss(Loss{Name: l.Name, Output: l.Output, Label: l.Label, Weight: l.Weight, Off: l.Off, Smoothing: l.Smoothing,
				Delta: l.Delta, Gamma: l.Gamma, Alpha: l.Alpha, Ignore: l.Ignore})(s); err != nil {
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
	if d.Preparation == nil {
		return nil
	}
	p := new(tables.Preparation)
	err := json.Unmarshal(d.Preparation, p)
	switch {
	case err != nil && s.preparation == nil:
		return fmt.Errorf("the file's %w\n  give Open WithPreparation with one that makes the same fields", graphs.Inner(err))
	case s.preparation == nil:
		s.preparation = p
		return checkOrdered(p)
	case !same(s.preparation, d.Preparation):
		return errors.New("WithPreparation: the file has another preparation, which made the fields that the weights were trained on: " +
			"leave WithPreparation out\n  to use another one, make a model by New with its network, give it the weights by Load, and train it")
	}
	return nil
}

// same compares with a file's preparation, and accepts that of another program.
func same(p *tables.Preparation, file json.RawMessage) bool {
	var of, own map[string]any
	if json.Unmarshal(file, &of) != nil || of["columns"] == nil {
		return true
	}
	text, err := json.Marshal(p)
	return err == nil && json.Unmarshal(text, &own) == nil && reflect.DeepEqual(of, own)
}

// Export writes the model with its weights, even untrained ones, as StableHLO for serving (managed.ExportModel). batch
// has the shapes, and needs only the inputs.
func (m *Model) Export(dir string, batch data.Batch, options managed.ExportOptions) error {
	batch, err := m.enter(batch, false)
	if err != nil {
		return fmt.Errorf("flaxlike: export: %w", graphs.Inner(err))
	}
	return managed.ExportModel(dir, m.state, batch, m.answers, options)
}
