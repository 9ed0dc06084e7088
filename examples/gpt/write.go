package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
)

// The key-value caches are the state's variables on the device; a prompt resets them.
type writer struct {
	model         network
	state         *managed.State
	prompt, token *managed.Stepper
}

func newWriter(m network, state *managed.State) *writer {
	w := &writer{model: m, state: state}
	w.prompt = managed.TestStep(func(b *managed.Builder) { w.step(b, true) })
	w.token = managed.TestStep(func(b *managed.Builder) { w.step(b, false) })
	return w
}

func (w *writer) close() error { return errors.Join(w.prompt.Close(), w.token.Close()) }

// step returns the logits after tokens x, which begin a text or follow the caches.
func (w *writer) step(b *managed.Builder, begins bool) {
	m := w.model
	variable := func(scope *model.Scope, name string, shape shapes.Shape) (value *graph.Node, set func(*graph.Node)) {
		v := scope.WithInitializer(nn.Initial("zeros")).VariableWithShape(name, shape).SetTrainable(false)
		if value = v.NodeValue(b.Graph()); begins {
			value = graph.ZerosLike(value)
		}
		return value, v.SetNodeValue
	}
	position, setPosition := variable(b.Scope().In("cache"), "position", shapes.Make(dtypes.Int32))
	caches := make([]nn.Cache, m.blocks)
	setKeys, setValues := make([]func(*graph.Node), m.blocks), make([]func(*graph.Node), m.blocks)
	shape := m.attention().NewCache(b.Scope(), graph.Zeros(b.Graph(), shapes.Make(dtypes.Float32, 1, 1, m.width)), m.window).Key.Shape()
	for i := range caches {
		scope := b.Scope().In("cache_%d", i)
		caches[i].Position = position
		caches[i].Key, setKeys[i] = variable(scope, "key", shape)
		caches[i].Value, setValues[i] = variable(scope, "value", shape)
	}
	logits := m.decode(b.Scope(), b.Field("x"), caches)
	setPosition(caches[0].Position)
	for i, c := range caches {
		setKeys[i](c.Key)
		setValues[i](c.Value)
	}
	last := graph.Slice(logits, graph.AxisRange(), graph.AxisRange(-1), graph.AxisRange())
	b.Output("logits", graph.Reshape(last, 1, m.vocabulary))
}

func (m network) fits(prompt []int32, n int) error {
	if len(prompt) == 0 || len(prompt)+n > m.window {
		return fmt.Errorf("the prompt has %d tokens, and %d are to be written: expected a prompt, and at most the window's %d tokens together",
			len(prompt), n, m.window)
	}
	return nil
}

func (w *writer) write(ctx context.Context, prompt []int32, n int, end int32, sampling text.Sampling, seed uint64) (written []int32, err error) {
	if err := w.model.fits(prompt, n); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(seed, 2))
	for step, next := w.prompt, prompt; len(written) < n; step, next = w.token, written[len(written)-1:] {
		logits, err := logitsOf(ctx, step, w.state, next)
		if err != nil {
			return nil, err
		}
		id, err := sampling.Draw(random, logits)
		if err != nil {
			return nil, err
		}
		if id == end {
			break
		}
		written = append(written, id)
	}
	return written, nil
}

func logitsOf(ctx context.Context, step *managed.Stepper, state *managed.State, ids []int32) ([]float32, error) {
	_, logs, err := step.Step(ctx, state, data.Batch{Fields: []data.Field{data.X(ids, 1, len(ids))}, Size: 1})
	if err != nil {
		return nil, err
	}
	logits, err := managed.Array(logs, "logits")
	if err != nil {
		return nil, err
	}
	return logits.Flat.([]float32), nil
}
