package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/arrays"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/listed"
)

var (
	// ErrInput: the model can never accept the request. A [Predictor] may wrap it too, as flaxlike.Model does.
	ErrInput  = graphs.ErrInput
	ErrFull   = errors.New("the queue is full")
	ErrClosed = gate.ErrClosed
)

// Predictor computes a batch's outputs by name, each with one row per row of the batch.
type Predictor interface {
	Answer(ctx context.Context, batch data.Batch) (map[string]data.Array, error)
}

// inputNamer is a [Predictor], or its method State() any returns one, that knows its fields; nil: unknown.
type inputNamer interface{ InputNames() []string }

// Func is a [Predictor].
type Func func(ctx context.Context, batch data.Batch) (map[string]data.Array, error)

func (f Func) Answer(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
	return f(ctx, batch)
}

// Batching configures batches.
type Batching struct {
	// MaxBatch bounds a batch's and a request's examples, at most 1,048,576; 0 means 64. Batches have the sizes 1, 2, 4, …
	// and MaxBatch, one program each, padded with the last example.
	MaxBatch int
	// Delay is the time that an incomplete batch's first request waits for others. With 0, a batch has the requests
	// that waited for the previous one.
	Delay time.Duration
	// Queue bounds the waiting examples, without the running batch; 0 means 16 times MaxBatch. This bounds the latency.
	Queue int
}

// Tensor is a model's input or output. Dims exclude the batch axis.
type Tensor struct {
	Name  string
	DType string // as data.Array.DType: "float32"
	Dims  []int
}

func tensorOf(name string, a data.Array) Tensor {
	return Tensor{name, a.DType(), slices.Clone(a.Dims[1:])}
}

func tensorsOf(outputs map[string]data.Array) (list []Tensor) {
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		list = append(list, tensorOf(name, outputs[name]))
	}
	return list
}

// Batcher is a [Predictor] that combines concurrent requests into batches.
type Batcher struct {
	of     Predictor
	set    Batching
	inputs []Tensor
	places map[string]int
	// prepares is of a predictor of tables, whose inputs are texts of columns.
	prepares *tables.Preparation
	example  []data.Field
	wake     chan struct{}
	done     chan struct{}

	mu      sync.Mutex
	waiting []*request
	rows    int
	closed  bool
	ready   bool
	gone    bool // the predictor is closed
	outputs []Tensor
}

type request struct {
	fields []data.Array
	rows   int
	came   time.Time
	queued time.Duration // until its batch was formed
	answer chan answer
}

type answer struct {
	outputs map[string]data.Array
	queued  time.Duration
	err     error
}

const mostBatch = 1 << 20

// New starts a batcher. example, of one row or more, sets the inputs' names, dtypes and dims, which each request must
// match; [Batcher.Warm] predicts from its first row. Fields that a predictor's method InputNames() []string does not
// name, like labels, are an error.
//
// The inputs of a predictor with a preparation (flaxlike.WithPreparation) are its columns, as texts; example is a row
// of the table, or empty.
func New(of Predictor, example data.Batch, set Batching) (*Batcher, error) {
	if set.MaxBatch == 0 {
		set.MaxBatch = 64
	}
	if set.Queue == 0 {
		set.Queue = 16 * min(set.MaxBatch, mostBatch)
	}
	switch {
	case of == nil:
		return nil, errors.New("serve: the predictor is nil")
	case set.MaxBatch < 0 || set.Delay < 0:
		return nil, fmt.Errorf("serve: MaxBatch is %d and Delay is %v, expected 0 (not given) or more", set.MaxBatch, set.Delay)
	case set.MaxBatch > mostBatch:
		return nil, fmt.Errorf("serve: MaxBatch is %d, expected at most %d", set.MaxBatch, mostBatch)
	case set.Queue < set.MaxBatch:
		return nil, fmt.Errorf("serve: Queue is %d, expected at least MaxBatch, %d: a request may have up to MaxBatch examples", set.Queue, set.MaxBatch)
	}
	prepares := preparationOf(of)
	host, err := example.OnHost()
	if err == nil && prepares != nil {
		host, err = textsOf(prepares, host)
	}
	if err == nil {
		host, err = host.Slice(0, 1)
	}
	if err != nil {
		return nil, fmt.Errorf("serve: the example: %w", graphs.Inner(err))
	}
	b := &Batcher{of: of, set: set, prepares: prepares, places: map[string]int{}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	for _, f := range host.Fields {
		if f.Name == data.Mask {
			continue
		}
		b.places[f.Name] = len(b.inputs)
		b.example, b.inputs = append(b.example, f), append(b.inputs, tensorOf(f.Name, f.Array))
	}
	if len(b.inputs) == 0 {
		return nil, errors.New("serve: the example has no fields: expected the inputs of the model")
	}
	if namer, ok := abilities.As[inputNamer](of); ok {
		names := namer.InputNames()
		for _, in := range b.inputs {
			if len(names) > 0 && !slices.Contains(names, in.Name) {
				return nil, fmt.Errorf("serve: the example has %q, which the predictor does not take, but each request would need: expected only %q", in.Name, names)
			}
		}
	}
	go b.run()
	return b, nil
}

func (b *Batcher) sizes() (sizes []int) {
	for n := 1; n < b.set.MaxBatch; n *= 2 {
		sizes = append(sizes, n)
	}
	return append(sizes, b.set.MaxBatch)
}

func (b *Batcher) sizeFor(rows int) int {
	size := 1
	for size < rows {
		size *= 2
	}
	return min(size, b.set.MaxBatch)
}

// Warm compiles all batch sizes by predicting from the example, and determines the outputs. Requests may run meanwhile.
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
		list := tensorsOf(outputs)
		b.mu.Lock()
		b.outputs = list
		b.mu.Unlock()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready, b.gone = true, false
	return nil
}

// Ready reports whether Warm has succeeded, Close was not called, and the predictor has not returned [ErrClosed].
func (b *Batcher) Ready() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ready && !b.closed && !b.gone
}

// Inputs returns a request's inputs, in the example's order.
func (b *Batcher) Inputs() []Tensor { return cloned(b.inputs) }

// Outputs returns the outputs, sorted by name; nil before Warm.
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

// Answer waits for the batch of a request of 1 to MaxBatch examples. A context that ends removes a waiting request,
// not a running one. The batch's memory is free when Answer returns. If the predictor fails for some outputs only, as
// by an outdated calibration, Answer returns the others with the error.
func (b *Batcher) Answer(ctx context.Context, batch data.Batch) (map[string]data.Array, error) {
	r, err := b.request(batch)
	if err != nil {
		return nil, fmt.Errorf("serve: predict: %w", err)
	}
	outputs, _, err := b.ask(ctx, r)
	return outputs, err
}

func (b *Batcher) ask(ctx context.Context, r *request) (outputs map[string]data.Array, queued time.Duration, err error) {
	if err := b.enqueue(ctx, r); err != nil {
		return nil, 0, fmt.Errorf("serve: predict: %w", err)
	}
	select {
	case a := <-r.answer:
		if a.err != nil {
			return a.outputs, a.queued, fmt.Errorf("serve: predict: %w", graphs.Inner(a.err))
		}
		return a.outputs, a.queued, nil
	case <-ctx.Done():
		b.leave(r)
		return nil, 0, fmt.Errorf("serve: predict: %w", context.Cause(ctx))
	}
}

func (b *Batcher) request(batch data.Batch) (*request, error) {
	r := &request{answer: make(chan answer, 1), fields: make([]data.Array, len(b.inputs))}
	batch, err := batch.OnHost()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInput, graphs.Inner(err))
	}
	fit := fitting{of: b}
	for _, f := range batch.Fields {
		// Texts fit the inputs of a preparation alone.
		if err := arrays.Check(f.Array.Flat, f.Array.Dims); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrInput, listed.Quoted(f.Name), graphs.Inner(err))
		}
		i, err := fit.add(f.Name, f.Array.DType(), f.Array.Dims)
		if err != nil {
			return nil, err
		}
		r.fields[i] = f.Array
	}
	r.rows = fit.rows
	return r, fit.complete()
}

type fitting struct {
	of    *Batcher
	seen  []bool
	rows  int
	first string
}

var errLarge = fmt.Errorf("%w: too many examples", ErrInput)

func (f *fitting) add(name, dtype string, dims []int) (int, error) {
	i, ok := f.of.places[name]
	if !ok {
		return 0, fmt.Errorf("%w: there is no input %s: expected %s", ErrInput, listed.Quoted(name), f.of.describe())
	}
	if f.seen == nil {
		f.seen, f.first = make([]bool, len(f.of.inputs)), name
	}
	if f.seen[i] {
		return 0, fmt.Errorf("%w: input %q appears twice", ErrInput, name)
	}
	in := f.of.inputs[i]
	switch {
	case dtype != in.DType || len(dims) == 0 || !slices.Equal(dims[1:], in.Dims):
		return 0, fmt.Errorf("%w: %q is %s %s: expected %s [batch%s]", ErrInput, name, dtype, shapeText(dims), in.DType, dimsText(in.Dims))
	case dims[0] > f.of.set.MaxBatch:
		return 0, fmt.Errorf("%w: %q has %d, expected 1 to %d", errLarge, name, dims[0], f.of.set.MaxBatch)
	case dims[0] < 1:
		return 0, fmt.Errorf("%w: %q has %d examples, expected 1 to %d", ErrInput, name, dims[0], f.of.set.MaxBatch)
	case f.rows > 0 && dims[0] != f.rows:
		return 0, fmt.Errorf("%w: %q has %d examples, and %q has %d", ErrInput, name, dims[0], f.first, f.rows)
	}
	f.seen[i], f.rows = true, dims[0]
	return i, nil
}

func (f *fitting) complete() error {
	for i, in := range f.of.inputs {
		if f.seen == nil || !f.seen[i] {
			return fmt.Errorf("%w: there is no %q: expected %s", ErrInput, in.Name, f.of.describe())
		}
	}
	return nil
}

func (b *Batcher) describe() (text string) {
	for i, in := range b.inputs {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%q, %s [batch%s]", in.Name, in.DType, dimsText(in.Dims))
	}
	return text
}

func dimsText(dims []int) (text string) {
	for _, d := range dims {
		text += fmt.Sprintf(", %d", d)
	}
	return text
}

// A client chose the shape.
func shapeText(shape []int) string {
	if len(shape) > 5 {
		return fmt.Sprintf("of %d axes", len(shape))
	}
	return fmt.Sprint(shape)
}
