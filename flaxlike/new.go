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

	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// New makes a model. Its first batch has the shapes and creates its variables ([Model.Init]). Training needs a loss.
// The default optimizer is adam with rate 0.001. A pretrained.Network begins with its weights.
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
		out := m.answers(b)
		for _, name := range slices.Sorted(maps.Keys(out)) { // for equal programs
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
	of := []managed.Option{managed.WithSeed(m.set.seed)}
	if w, ok := m.network.(weighted); ok {
		m.network, of = Functional(w.Outputs), append(of, w.Weights())
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
	of = append(of, managed.WithOptimizer(optimizer))
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

// process is shared: each runtime has its own threads and memory.
var process struct {
	gate    gate.Gate
	runtime *xla.Runtime
	models  int
}

func borrow(ctx context.Context, options ...xla.Option) (on *xla.Runtime, giveBack func() error, err error) {
	p := &process
	if err := p.gate.Change(ctx); err != nil {
		return nil, nil, err
	}
	defer p.gate.DoneChanging()
	if p.models == 0 {
		if p.runtime, err = xla.Open(ctx, xla.CPU, options...); err != nil {
			return nil, nil, err
		}
	}
	p.models++
	return p.runtime, sync.OnceValue(func() error {
		if err := p.gate.Change(context.Background()); err != nil {
			return err
		}
		defer p.gate.DoneChanging()
		if p.models--; p.models > 0 {
			return nil
		}
		return p.runtime.Close()
	}), nil
}

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
