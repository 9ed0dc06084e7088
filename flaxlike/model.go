package flaxlike

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Model is a network with its losses, metrics, optimizer and training state. It changes in place.
//
// Any number of goroutines may call its methods. Readers (Predict, Evaluate, Save, Summary, Export) run concurrently
// with each other and a Fit. Changes such as Load wait for the end of a step. A second concurrent Fit is a
// managed.ErrBusy. Evaluate, and Predict for more than one batch, use the weights of their start; a concurrent Fit
// copies the weights for each. Close waits for the current step; then a running Fit and later calls return
// managed.ErrClosed. Methods without a context wait as those of managed.State, and Close also for a New that opens the
// same runtime.
type Model struct {
	state                *managed.State
	network              nn.Layer
	set                  settings
	train, test, predict *managed.Stepper
	closing              *sync.Once
	giveBack             func() error  // of the process's runtime; nil with a strategy of the caller
	view                 *managed.View // for tests and predictions; nil uses the state
	fitting              *atomic.Bool
	seen                 *seen
}

// New makes a model. Its first batch has the shapes and creates its variables; see [Model.Init]. Training needs at
// least one loss. The default optimizer is adam with rate 0.001.
func New(ctx context.Context, network nn.Layer, options ...Option) (*Model, error) {
	m, err := newModel(ctx, network, options)
	if err != nil {
		return nil, fmt.Errorf("flaxlike: new model: %w", graphs.Inner(err))
	}
	return m, nil
}

func newModel(ctx context.Context, network nn.Layer, options []Option) (*Model, error) {
	m := &Model{network: copied(network), closing: new(sync.Once), fitting: new(atomic.Bool), seen: &seen{built: map[*managed.Stepper]bool{}}}
	if err := m.open(ctx, options); err != nil {
		return nil, err
	}
	m.train = managed.TrainStep(m.report, managed.RunningAverages(), managed.LearningRates())
	m.test = managed.TestStep(m.report, managed.RunningAverages())
	m.predict = managed.TestStep(func(b *managed.Builder) {
		out := m.outputs(b)
		for _, name := range slices.Sorted(maps.Keys(out)) { // a fixed order makes equal programs
			b.Output(name, out[name])
		}
	}, managed.OutputsAlone())
	return m, nil
}

func (m *Model) open(ctx context.Context, options []Option) (err error) {
	for _, o := range options {
		if o == nil {
			continue
		}
		if err := o(&m.set); err != nil {
			return err
		}
	}
	switch {
	case layering.IsNil(m.network) && m.set.network == nil:
		return errNoNetwork
	case m.network != nil && (m.set.network != nil || m.set.layers != nil):
		return errors.New("WithNetwork and WithLayer are only for Open, expected only the network")
	case m.network == nil:
		m.network = m.set.network
	}
	m.set.batchSize = cmp.Or(m.set.batchSize, 32)
	optimizer, err := m.set.optimizerOf()
	if err != nil {
		return err
	}
	if optimizer, err = m.set.scaled(optimizer); err != nil {
		return err
	}
	m.set.optimizer = optimizer
	if err := errors.Join(m.set.nameClasses(), m.set.checkNames()); err != nil {
		return err
	}
	if m.set.strategy == nil {
		if m.set.strategy, err = m.openDefault(ctx); err != nil {
			return err
		}
	}
	of := []managed.Option{managed.WithOptimizer(optimizer), managed.WithSeed(m.set.seed)}
	if m.set.policy != nil {
		of = append(of, managed.WithPolicy(*m.set.policy))
	}
	m.state, err = managed.New(m.set.strategy, of...)
	if err != nil && m.giveBack != nil {
		err = errors.Join(err, m.giveBack())
	}
	return err
}

func (m *Model) openDefault(ctx context.Context) (strategies.Strategy, error) {
	runtime, giveBack, err := borrow(ctx, m.set.plugin...)
	if errors.Is(err, xla.ErrPluginNotFound) && len(m.set.plugin) == 0 {
		err = fmt.Errorf("%w\n  or give New flaxlike.InstallIfMissing(progress), which downloads it", err)
	}
	if err != nil {
		return nil, err
	}
	m.giveBack = giveBack
	return strategies.Jit(runtime), nil
}

var errNoNetwork = errors.New("the network is nil: give New a layer, such as nn.Sequential{…}, or a Functional")

func (s *settings) checkNames() error {
	if len(s.losses) > 0 && !slices.ContainsFunc(s.losses, func(l Loss) bool { return !l.Off }) {
		return errors.New("all losses are Off: expected one that trains; for a figure without training use a metric (WithMetrics)")
	}
	taken := map[string]bool{trained: len(s.losses) != 1}
	for _, l := range s.losses {
		name := l.logged(len(s.losses) == 1)
		if taken[name] {
			return fmt.Errorf("two losses would be logged as %q, the name of their sum being %q: give one of them a Name with a Func (see losses.Named), or another Output", name, trained)
		}
		taken[name] = true
	}
	for _, m := range s.metrics {
		name := m.logged()
		if taken[name] {
			return fmt.Errorf("two figures would be logged as %q: give one another Name, with a Metric or a Func", name)
		}
		taken[name] = true
	}
	return nil
}

// Init creates the variables for batches like this one, and changes no value.
func (m *Model) Init(ctx context.Context, batch data.Batch) error {
	return m.init(ctx, func() ([]strategies.Input, error) {
		host, err := batch.OnHost()
		if err != nil {
			return nil, err
		}
		return strategies.Inputs(host)
	})
}

func (m *Model) init(ctx context.Context, inputs func() ([]strategies.Input, error)) error {
	of, err := inputs()
	if err == nil {
		err = m.predict.Build(ctx, m.state, of)
	}
	if err != nil {
		return fmt.Errorf("flaxlike: init: %w", graphs.Inner(err))
	}
	return nil
}

// TrainStep makes one training step. It logs each loss, its mean since the last reset as avg_<loss>, the metrics and
// the learning rate.
func (m *Model) TrainStep(ctx context.Context, batch data.Batch) (*Model, loop.Logs, error) {
	return step{of: m.train}.Step(ctx, m, batch)
}

// TestStep makes one test step, which changes no parameter.
func (m *Model) TestStep(ctx context.Context, batch data.Batch) (*Model, loop.Logs, error) {
	return step{of: m.test}.Step(ctx, m, batch)
}

// ResetStep resets the metrics and running means.
func (m *Model) ResetStep(ctx context.Context) (*Model, error) {
	if m.view != nil {
		return m, m.view.ResetMetrics()
	}
	_, err := managed.Reset(ctx, m.state)
	return m, err
}

func (m *Model) outputsOf(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
	known, logs := len(m.seen.known()), loop.Logs{}
	err := graphs.Input(m.seen.look(batch, true))
	if err == nil {
		logs, err = m.one(ctx, m.predict, batch)
	}
	if err == nil && len(m.seen.known()) > known {
		err = graphs.Input(m.seen.look(batch, true))
	}
	if err != nil {
		return nil, m.ofOtherInputs(batch, err)
	}
	outputs := map[string]data.Array{}
	for e := range logs.All() {
		if e.IsNumber() || e.Collection != loop.Outputs {
			continue
		}
		v, err := e.Any()
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", e.Name, err)
		}
		if outputs[e.Name], err = managed.ArrayOf(v.(*tensors.Tensor)); err != nil {
			return nil, fmt.Errorf("output %q: %w", e.Name, err)
		}
	}
	return outputs, m.dropLeftover(batch, outputs)
}

// ofOtherInputs puts the fields that differ from the build's before an error, which they then caused. Only that is no
// error: networks may take other lengths.
func (m *Model) ofOtherInputs(batch data.Batch, err error) error {
	for _, in := range m.inputs() {
		f, none := batch.Field(in.Name)
		if none == nil && len(f.Dims) > 0 && (f.DType() != in.Type || !slices.Equal(f.Dims[1:], in.Dims)) {
			err = graphs.Input(fmt.Errorf("field %q is %s%v for an example, and was %s%v when the network was built\n  %w", in.Name, f.DType(), f.Dims[1:], in.Type, in.Dims, graphs.Inner(err)))
		}
	}
	return err
}

// Export writes the model with its weights as StableHLO for serving; see managed.ExportModel. batch has the shapes, and
// needs only the inputs. As [Model.Predict], it takes untrained weights.
func (m *Model) Export(dir string, batch data.Batch, options managed.ExportOptions) error {
	return managed.ExportModel(dir, m.state, batch, m.outputs, options)
}

// Close frees the state, the programs, and a runtime that New opened if no other model uses it. A second Close waits
// for the first. Close within a step's function is a managed.ErrBusy.
func (m *Model) Close() error {
	err := m.state.Close()
	if errors.Is(err, managed.ErrBusy) {
		return err
	}
	m.closing.Do(func() {
		err = errors.Join(err, m.train.Close(), m.test.Close(), m.predict.Close())
		if m.giveBack != nil {
			err = errors.Join(err, m.giveBack())
		}
	})
	return gate.Once(err)
}

func (m *Model) one(ctx context.Context, of *managed.Stepper, batch data.Batch) (loop.Logs, error) {
	m.changing(of, 1)
	if m.view != nil {
		logs, err := m.view.Step(ctx, of, batch)
		return logs, m.ofTable(batch, err)
	}
	_, logs, err := of.Step(ctx, m.state, batch)
	return logs, m.ofTable(batch, ofShapes(err))
}

func (m *Model) ofTable(batch data.Batch, err error) error {
	if err == nil || m.set.preparation == nil || !slices.ContainsFunc(batch.Fields, func(f data.Field) bool { _, texts := f.Array.Flat.([]string); return texts }) {
		return err
	}
	return failure(fmt.Errorf("%w%s", graphs.Inner(err), prepareIt))
}

const prepareIt = "\n  the model has a preparation, which makes its fields from a table: give it table.Map(preparation.Inputs), or table.Map(preparation.Apply) " +
	"where labels are needed; Model.Describe has its JSON"

func (m *Model) changing(of *managed.Stepper, steps int) {
	if of == m.train {
		m.seen.changes.Add(1)
		m.seen.stepped(steps)
	}
}

func (m *Model) several(ctx context.Context, s step, batches []data.Batch) (logs []loop.Logs, err error) {
	m.changing(s.of, len(batches))
	if m.view != nil {
		logs, err = m.view.StepBlock(ctx, s.of, batches)
	} else {
		_, logs, err = s.of.StepBlock(ctx, m.state, batches)
		err = ofShapes(err)
	}
	err = m.ofTable(batches[0], err)
	if s.means {
		logs = asShown(logs, m.set.parts())
	}
	return logs, err
}

func ofShapes(err error) error {
	if !errors.Is(err, managed.ErrShapes) {
		return err
	}
	return failure(fmt.Errorf("%w: each is a program to be compiled: give it batches of one shape (data.Pad, data.PadSequences)", managed.ErrShapes))
}

// With set, the set is checked once, up to looked bounds. means logs running means ([asShown]). part: the set may lack
// classes.
type step struct {
	of     *managed.Stepper
	means  bool
	set    *data.Set
	looked *int
	part   bool
	stream *stream
}

func (m *Model) stepOn(of *managed.Stepper, set *data.Set) step {
	if set.Mapped() {
		set = nil
	}
	return step{of: of, means: true, set: set, looked: new(-1)}
}

var (
	_ loop.Stepper[*Model, data.Batch] = step{}
	_ abilities.Awaiter[*Model]        = step{}
)

func failure(err error) error { return &graphs.Failure{Package: "flaxlike", Err: err} }

type untrained struct{ error }

func (u *untrained) Unwrap() error { return u.error }
func (u *untrained) Point() string { return graphs.Point(u.error) }

// beforeAll removes the step's number from an error without a step.
func beforeAll(err error) error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if u, ok := e.(*untrained); ok {
			return fmt.Errorf("before the first step: %w", graphs.Inner(u.error))
		}
	}
	return err
}

func (s step) String() string { return s.of.String() }

// BeginEvaluation separates the step's metrics from training's. A view has its own.
func (s step) BeginEvaluation(ctx context.Context, m *Model) (end func(context.Context) error, err error) {
	if m.view != nil {
		end, err = func(context.Context) error { return nil }, m.view.ResetMetrics()
	} else {
		end, err = s.of.BeginEvaluation(ctx, m.state)
	}
	if err != nil || s.stream == nil {
		return end, err
	}
	*s.stream = stream{}
	restore := end
	return func(ctx context.Context) error { return errors.Join(s.stream.check(m.set.weights), restore(ctx)) }, nil
}
func (s step) BlockSize() int { return s.of.BlockSize() }

func (s step) Step(ctx context.Context, m *Model, batch data.Batch) (*Model, loop.Logs, error) {
	if err := m.before(s, batch); err != nil {
		return m, loop.Logs{}, &untrained{failure(err)}
	}
	known := len(m.seen.known())
	logs, err := m.one(ctx, s.of, batch)
	if err == nil && len(m.seen.known()) > known {
		if err = m.before(s, batch); err != nil {
			err = errors.Join(failure(err), m.state.Wait())
		}
	}
	return m, logs, err
}

func (s step) StepBlock(ctx context.Context, m *Model, batches []data.Batch) (*Model, []loop.Logs, error) {
	if err := s.ready(ctx, m, batches[0]); err != nil {
		return m, nil, &untrained{failure(m.ofTable(batches[0], err))}
	}
	for i, b := range batches {
		if err := m.before(s, b); err != nil {
			if i == 0 {
				return m, nil, &untrained{failure(err)}
			}
			batches = batches[:i] // the next block begins with it
			logs, stepErr := m.several(ctx, s, batches)
			if stepErr != nil {
				return m, logs, errors.Join(stepErr, failure(err))
			}
			return m, logs, failure(err)
		}
	}
	logs, err := m.several(ctx, s, batches)
	return m, logs, err
}

func (s step) Await(ctx context.Context, m *Model) error {
	if m.view != nil {
		return m.view.Await()
	}
	return s.of.Await(ctx, m.state)
}

type variable struct {
	name      string
	shape     shapes.Shape
	trainable bool
}

// ErrNotBuilt is wrapped by the error about a model that has met no batch, so that its shapes are unknown.
var ErrNotBuilt = errors.New("the model has no variables before its first batch")

func (m *Model) built() ([]variable, error) {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	if len(m.seen.variables) == 0 {
		return nil, fmt.Errorf("%w: call Init with a batch of the shapes to come", ErrNotBuilt)
	}
	return m.seen.variables, nil
}

// SetOptimizer replaces the optimizer from the next step on, without the previous one's state and learning rate. The
// steps are compiled again. During a Fit it is a managed.ErrBusy. With a policy that scales losses it is an error: Load
// the saved weights into a new model.
func (m *Model) SetOptimizer(ctx context.Context, o *optim.Optimizer) error {
	err := m.setOptimizer(ctx, o)
	if err != nil {
		return fmt.Errorf("flaxlike: set the optimizer: %w", graphs.Inner(err))
	}
	return nil
}

func (m *Model) setOptimizer(ctx context.Context, o *optim.Optimizer) error {
	if o != nil {
		var err error
		if o, err = m.set.scaled(o); err != nil {
			return err
		}
	}
	if !m.fitting.CompareAndSwap(false, true) {
		return fmt.Errorf("the model is %w: a Fit is training it: wait for it to end", managed.ErrBusy)
	}
	defer m.fitting.Store(false)
	weights := m.seen.weights()
	if err := m.change(func() error { return m.state.SetOptimizer(ctx, o) }); err != nil {
		return err
	}
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	m.seen.optimizer, m.seen.origin = o, weights
	return nil
}
