package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/graphs"
)

var (
	// ErrInput is wrapped by the error about a request that the model cannot take, whatever the moment. An error of a
	// [Predictor] that wraps it is the request's own fault too, as that of a flaxlike.Model about an integer that its
	// Embedding does not have.
	ErrInput = graphs.ErrInput
	// ErrFull is wrapped by the error about a request that came when the queue was full.
	ErrFull = errors.New("the queue is full")
	// ErrClosed is wrapped by the error about a request that came behind Close.
	ErrClosed = gate.ErrClosed
)

// Predictor gives the outputs for a batch by name, each with one row for each of the batch's rows.
type Predictor interface {
	Answer(ctx context.Context, batch data.Batch) (map[string]data.Array, error)
}

// inputNamer is a [Predictor], or the result of its method State() any, that knows which fields it takes. It returns
// nil while it does not know them. A flaxlike.Model has one.
type inputNamer interface{ InputNames() []string }

// Func is a [Predictor] that is one function.
type Func func(ctx context.Context, batch data.Batch) (map[string]data.Array, error)

// Answer calls the function.
func (f Func) Answer(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
	return f(ctx, batch)
}

// Batching says how requests become batches. The zero value is a good one.
type Batching struct {
	// MaxBatch is the most examples in a batch, and in a request; 64 if it is 0. Batches have the sizes 1, 2, 4, … and
	// MaxBatch, each of which is a program: copies of the last example fill them up.
	MaxBatch int
	// Delay is how long the first request of a batch that is not full waits for others. With 0 a batch has what waits
	// when the one before it ends, and no request waits for others.
	Delay time.Duration
	// Queue is the most examples that wait, those of the batch that is running not among them; 16 times MaxBatch if it
	// is 0. It bounds how long a request can take: so many batches are before it.
	Queue int
}

// Tensor is an input or an output of a model. Dims are those of one example, without the axis of the batch.
type Tensor struct {
	Name  string
	DType string // as data.Array.DType has it: "float32"
	Dims  []int
}

func tensorOf(name string, a data.Array) Tensor {
	return Tensor{name, a.DType(), slices.Clone(a.Dims[1:])}
}

// Batcher is a [Predictor] that has requests of many goroutines run together. Close ends it.
type Batcher struct {
	of      Predictor
	set     Batching
	inputs  []Tensor
	example []data.Field // one row
	wake    chan struct{}
	done    chan struct{}

	mu      sync.Mutex // guards the rest
	waiting []*request
	rows    int // of all that wait
	closed  bool
	ready   bool
	gone    bool // the predictor said that it is closed
	outputs []Tensor
}

// request is one that waits, or runs.
type request struct {
	fields []data.Array // in the order of the inputs
	rows   int
	came   time.Time
	answer chan answer // of one
}

type answer struct {
	outputs map[string]data.Array
	err     error
}

// New makes a batcher. The example is a batch of one row or more with the inputs alone: it says their names, types and
// dims, and its first row is what [Batcher.Warm] predicts from. Each request must have all of its fields, so that one
// which the predictor does not take, as the labels, is an error where the predictor has a method InputNames() []string.
func New(of Predictor, example data.Batch, set Batching) (*Batcher, error) {
	if set.MaxBatch == 0 {
		set.MaxBatch = 64
	}
	if set.Queue == 0 {
		set.Queue = 16 * set.MaxBatch
	}
	switch {
	case of == nil:
		return nil, errors.New("serve: the predictor is nil")
	case set.MaxBatch < 0 || set.Delay < 0:
		return nil, fmt.Errorf("serve: MaxBatch is %d and Delay is %v, expected 0 (not given) or more", set.MaxBatch, set.Delay)
	case set.Queue < set.MaxBatch:
		return nil, fmt.Errorf("serve: Queue is %d, expected at least MaxBatch, %d: a request may have so many examples", set.Queue, set.MaxBatch)
	}
	host, err := example.OnHost()
	if err == nil {
		host, err = host.Slice(0, 1)
	}
	if err != nil {
		return nil, fmt.Errorf("serve: the example: %w", graphs.Inner(err))
	}
	b := &Batcher{of: of, set: set, wake: make(chan struct{}, 1), done: make(chan struct{})}
	for _, f := range host.Fields {
		if f.Name == data.Mask {
			continue
		}
		b.example, b.inputs = append(b.example, f), append(b.inputs, tensorOf(f.Name, f.Array))
	}
	if len(b.inputs) == 0 {
		return nil, errors.New("serve: the example has no fields: expected the inputs of the model")
	}
	if namer, ok := abilities.As[inputNamer](of); ok {
		names := namer.InputNames()
		for _, in := range b.inputs {
			if len(names) > 0 && !slices.Contains(names, in.Name) {
				return nil, fmt.Errorf("serve: the example has %q, which the predictor does not take, and each request would have to have it: expected %q alone", in.Name, names)
			}
		}
	}
	go b.run()
	return b, nil
}

// sizes are those of batches.
func (b *Batcher) sizes() (sizes []int) {
	for n := 1; n < b.set.MaxBatch; n *= 2 {
		sizes = append(sizes, n)
	}
	return append(sizes, b.set.MaxBatch)
}

// sizeFor is that of the batch for so many examples.
func (b *Batcher) sizeFor(rows int) int {
	size := 1
	for size < rows {
		size *= 2
	}
	return min(size, b.set.MaxBatch)
}

// Warm predicts from the example in each size of batch, so that each is compiled, and says what the outputs are: the
// batcher is ready then. It goes beside requests, and without it they compile as they come.
func (b *Batcher) Warm(ctx context.Context) error {
	one := []*request{{rows: 1}}
	for _, f := range b.example {
		one[0].fields = append(one[0].fields, f.Array)
	}
	for _, size := range b.sizes() {
		if err := context.Cause(ctx); err != nil {
			return fmt.Errorf("serve: warm: %w", err)
		}
		outputs, err := b.predict(ctx, b.stack(one, size))
		if err != nil {
			return fmt.Errorf("serve: warm a batch of %d: %w", size, graphs.Inner(err))
		}
		var list []Tensor
		for name, a := range outputs {
			list = append(list, tensorOf(name, a))
		}
		slices.SortFunc(list, func(a, b Tensor) int { return cmp.Compare(a.Name, b.Name) })
		b.mu.Lock()
		b.outputs = list
		b.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready, b.gone = true, false
	return nil
}

// Ready tells whether Warm has come to its end, and neither Close was called nor has the predictor said to a request,
// by an error that wraps [ErrClosed], that it is closed itself.
func (b *Batcher) Ready() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready && !b.closed && !b.gone
}

// Inputs are what a request must have, in the order of the example.
func (b *Batcher) Inputs() []Tensor { return cloned(b.inputs) }

// Outputs are what an answer has, by their names; nil before Warm.
func (b *Batcher) Outputs() []Tensor {
	b.mu.Lock()
	defer b.mu.Unlock()
	return cloned(b.outputs)
}

func cloned(list []Tensor) []Tensor {
	list = slices.Clone(list)
	for i := range list {
		list[i].Dims = slices.Clone(list[i].Dims)
	}
	return list
}

// Answer answers one request, of 1 to MaxBatch examples: it waits for its batch. A context that ends takes the request
// out of the queue; what has begun then goes on for the others. The batch's memory is free when Answer returns. Where
// the predictor fails for some outputs alone, as a flaxlike.Model by an outdated calibration, the others are given
// beside the error.
func (b *Batcher) Answer(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
	r, err := b.request(batch)
	if err == nil {
		err = b.enqueue(ctx, r)
	}
	if err != nil {
		return nil, fmt.Errorf("serve: predict: %w", err)
	}
	select {
	case a := <-r.answer:
		if a.err != nil {
			return a.outputs, fmt.Errorf("serve: predict: %w", graphs.Inner(a.err))
		}
		return a.outputs, nil
	case <-ctx.Done():
		b.leave(r)
		return nil, fmt.Errorf("serve: predict: %w", context.Cause(ctx))
	}
}

// request checks a batch. No other one is to fail by it.
func (b *Batcher) request(batch data.Batch) (*request, error) {
	r := &request{answer: make(chan answer, 1)}
	batch, err := batch.OnHost()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, graphs.Inner(err))
	}
	for i, in := range b.inputs {
		a, err := batch.Field(in.Name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: there is no %q: expected %s", ErrInput, in.Name, b.describe())
		case a.Check() != nil:
			return nil, fmt.Errorf("%w: %q: %w", ErrInput, in.Name, graphs.Inner(a.Check()))
		case a.DType() != in.DType || len(a.Dims) == 0 || !slices.Equal(a.Dims[1:], in.Dims):
			return nil, fmt.Errorf("%w: %q is %s %v: expected %s [batch%s]", ErrInput, in.Name, a.DType(), a.Dims, in.DType, dims(in.Dims))
		case i > 0 && a.Len() != r.rows:
			return nil, fmt.Errorf("%w: %q has %d examples, and %q has %d", ErrInput, in.Name, a.Len(), b.inputs[0].Name, r.rows)
		case a.Len() < 1 || a.Len() > b.set.MaxBatch:
			return nil, fmt.Errorf("%w: %q has %d examples, expected 1 to %d", ErrInput, in.Name, a.Len(), b.set.MaxBatch)
		}
		r.rows = a.Len()
		r.fields = append(r.fields, a)
	}
	if len(batch.Fields) != len(b.inputs) {
		return nil, fmt.Errorf("%w: there are %d fields: expected %s", ErrInput, len(batch.Fields), b.describe())
	}
	return r, nil
}

// describe lists the inputs for a message.
func (b *Batcher) describe() (text string) {
	for i, in := range b.inputs {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%q, %s [batch%s]", in.Name, in.DType, dims(in.Dims))
	}
	return text
}

func dims(of []int) (text string) {
	for _, d := range of {
		text += fmt.Sprintf(", %d", d)
	}
	return text
}
