package managed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/blocks"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/strategies"
)

// Stepper is a step that can run on any number of states: it is compiled for each state and each shape of batch that
// it meets, and keeps what it compiled until Close. It may be used by any number of goroutines; its function is called by one at
// a time, and must not use the state ([ErrBusy]). Who uses a state beside whom is said at [State].
type Stepper struct {
	name     string
	train    bool
	build    Build
	only     func(name string) bool // nil: all
	rule     Optimizer              // nil: the state's
	scope    string                 // of what the rule keeps
	averages bool
	shapes   int // the most shapes of batches; 0 is mostShapes

	building sync.Mutex
	changes  atomic.Bool // a program of it changes a state

	mu       sync.Mutex // guards the rest
	compiled []*compiled
	uses     int64
}

var (
	_ loop.BlockStepper[*State, data.Batch] = (*Stepper)(nil)
	_ loop.Awaiter[*State]                  = (*Stepper)(nil)
)

// StepOption is a setting of a step.
type StepOption func(*Stepper)

// Only has a train step update those trainable variables alone whose full names ("/generator/dense/weights") match.
func Only(match func(name string) bool) StepOption { return func(s *Stepper) { s.only = match } }

// By has a train step update with another optimizer than the state's: several train steps on one state, as of a generator and
// its discriminator, each have their own. Its learning rate and its count of steps are under the scope of that name. Two Adams
// that train the same parameter share its moments: GoMLX keeps them by the parameter's name.
func By(name string, o Optimizer) StepOption {
	return func(s *Stepper) { s.scope, s.rule = name, o }
}

// RunningAverages has a step report, for each loss and each figure of [AddMetric], its mean since the last reset, as avg_<name>; see
// [Builder.Mean].
func RunningAverages() StepOption { return func(s *Stepper) { s.averages = true } }

// MaxShapes is for how many shapes of batches a step is compiled on one state, 100 if it is not said. With one more a training
// step is refused ([ErrShapes]): each shape takes a compilation, and a training that meets so many is mostly a mistake. Any
// other step gives up the program that it used longest ago.
func MaxShapes(n int) StepOption { return func(s *Stepper) { s.shapes = n } }

// TrainStep is a step that reports at least one loss; the sum of its losses is differentiated and the state's
// optimizer updates the trainable variables that the step uses.
func TrainStep(build Build, options ...StepOption) *Stepper {
	return newStepper(&Stepper{name: "train step", train: true, build: build}, options)
}

// TestStep is a step that computes and reports; it changes no parameter.
func TestStep(build Build, options ...StepOption) *Stepper {
	return newStepper(&Stepper{name: "test step", build: build}, options)
}

func newStepper(s *Stepper, options []StepOption) *Stepper {
	if s.build == nil {
		s.build = func(*Builder) { panic(errors.New("the function that builds the step is nil")) }
	}
	for _, o := range options {
		if o != nil {
			o(s)
		}
	}
	return s
}

// String is "train step" or "test step".
func (s *Stepper) String() string { return s.name }

// Step makes one step and changes the state in place; it returns the same state. The logs are read from the device
// when somebody asks for a value. The first step on a state, and the first with a new shape of batch, compiles.
//
// A loop calls StepBlock instead, whose program is another one where steps are small: the last bit may differ.
func (s *Stepper) Step(ctx context.Context, state *State, batch data.Batch) (*State, loop.Logs, error) {
	if err := context.Cause(ctx); err != nil {
		return state, loop.Logs{}, s.failed(err)
	}
	logs, err := s.someSteps(ctx, state, nil, []data.Batch{batch}, 1)
	if err != nil {
		return state, loop.Logs{}, s.failed(err)
	}
	return state, logs[0], nil
}

// failed says that it was this step; a loop, which says so too, takes the point alone.
func (s *Stepper) failed(err error) error {
	return &graphs.Failure{Package: "managed", What: s.name, Err: err}
}

// BlockSize is how many steps the loop may give to StepBlock.
func (s *Stepper) BlockSize() int { return blocks.Steps }

// StepBlock makes the steps of several batches, as many as fit in one program run: see [loop.BlockStepper]. How many that
// are is a matter of the model's and the batches' size (see [strategies.Program]); the steps compute the same bits however
// they are divided. A context that ends is not heeded: the batches are taken from the data, and a run is to end where that is.
func (s *Stepper) StepBlock(ctx context.Context, state *State, batches []data.Batch) (*State, []loop.Logs, error) {
	logs, err := s.inBlocks(ctx, state, nil, batches)
	return state, logs, err
}

func (s *Stepper) inBlocks(ctx context.Context, state *State, view *View, batches []data.Batch) ([]loop.Logs, error) {
	ctx = context.WithoutCancel(ctx)
	all := make([]loop.Logs, 0, len(batches))
	for len(batches) > 0 {
		logs, err := s.someSteps(ctx, state, view, batches, blocks.Steps)
		if err != nil {
			return all, s.failed(err)
		}
		all, batches = append(all, logs...), batches[len(logs):]
	}
	return all, nil
}

// Await waits for the steps of the state that were begun, and gives the error of one that failed, unless it was given
// before: see [loop.Awaiter] and [State.Wait].
func (s *Stepper) Await(_ context.Context, state *State) error {
	if state == nil || state.gate.Read(context.Background()) != nil {
		return nil
	}
	defer state.gate.DoneReading()
	if err := state.follow(nil); err != nil {
		return s.failed(err)
	}
	return nil
}

// someSteps makes the steps of the first batches, as many as go together, by a program of at most so many steps; on a view of
// the state, if there is one.
func (s *Stepper) someSteps(ctx context.Context, state *State, view *View, batches []data.Batch, most int) ([]loop.Logs, error) {
	if state == nil {
		return nil, errors.New("the state is nil: make one with New")
	}
	if s.train {
		if !state.training.CompareAndSwap(false, true) {
			return nil, fmt.Errorf("the state is %w: another training step on it is being made, and a state is trained by one at a time: wait for the other, or train a Clone", ErrBusy)
		}
		defer state.training.Store(false)
	}
	w := sharing
	if s.train || view == nil && s.changes.Load() {
		w = changing
	}
	for {
		logs, wants, err := s.attempt(ctx, state, view, batches, most, w)
		switch {
		case err != nil || wants == w:
			return logs, err
		case wants == compiling:
			if err := s.prepareFor(ctx, state, batches[0], most); err != nil {
				return nil, err
			}
		default:
			w = wants
			if view == nil {
				s.changes.Store(true) // it will the next time
			}
		}
	}
}

// way is how a step has its state: beside others, alone, or alone with what steps are built from.
type way int

const (
	sharing way = iota
	changing
	building
	compiling // the step is to be compiled first
)

// attempt makes the steps if they can be made in a way, and else tells in which.
func (s *Stepper) attempt(ctx context.Context, state *State, view *View, batches []data.Batch, most int, w way) (logs []loop.Logs, wants way, err error) {
	if w == building {
		if err := state.structure.Change(ctx); err != nil {
			return nil, w, of(err)
		}
		defer state.structure.DoneChanging()
	}
	if err := state.gate.Enter(ctx, w != sharing); err != nil {
		return nil, w, of(err)
	}
	defer state.gate.Leave(w != sharing)
	if err := state.usable(); err != nil {
		return nil, w, err
	}
	if err := view.usable(); err != nil {
		return nil, w, err
	}
	if s.train {
		state.noteBatch(batches[0])
	}
	first, err := state.strategy.Batch(batches[0])
	if err != nil {
		return nil, w, err
	}
	mask := -1 // the place of the field that a training looks at
	if s.train {
		mask = slices.IndexFunc(first.Fields, func(f data.Field) bool { return f.Name == data.Mask })
	}
	if err := trainable(&first, mask); err != nil {
		return nil, w, err
	}
	c := s.lookup(state, first, most)
	if c == nil {
		return nil, compiling, nil
	}
	if err := c.counts(&first); err != nil {
		return nil, w, err
	}
	if wants := c.wants(view); wants > w {
		return nil, wants, nil
	}
	r, _ := c.rooms.Get().(*room)
	if r == nil {
		r = &room{args: append(make([]strategies.Buffer, len(c.values)), c.sets...)}
	}
	defer c.rooms.Put(r)
	r.batches = append(r.batches[:0], first)
	for n := 1; n < min(len(batches), c.program.Block()); n++ {
		next, err := state.strategy.Batch(batches[n])
		if err != nil || !c.fits(next) || trainable(&next, mask) != nil || c.counts(&next) != nil {
			break // the steps before it are made first
		}
		r.batches = append(r.batches, next)
	}
	logs, err = c.steps(r, view)
	return logs, w, err
}

// trainable refuses to train on a batch in which no example counts: the loss would be 0, its means those of nothing, and momentum and decay
// would move the parameters all the same. A test may pass over such a batch. The mask is the field at that place; below 0 there is none.
func trainable(b *data.Batch, mask int) error {
	if mask < 0 {
		return nil
	}
	of := b.Fields[mask].Array
	if counts, ok := of.Flat.([]bool); ok && len(of.Dims) == 1 && !slices.Contains(counts, true) {
		return fmt.Errorf("field %q of the batch has true for none of %d rows, so that no example counts: expected true where one does; leave out a batch without any", data.Mask, len(counts))
	}
	return nil
}

// counts refuses a batch whose Size leaves out rows that nothing marks as padding, where numbers are reported: those would be of all rows.
func (c *compiled) counts(b *data.Batch) error {
	if b.Size == 0 || len(c.layout) == 0 || len(b.Fields) == 0 {
		return nil
	}
	if dims := b.Fields[0].Array.Dims; len(dims) > 0 && b.Size == dims[0] { // as nearly always
		return nil
	}
	// Fields that disagree have Size say which of their axes counts the examples.
	marked := func(f data.Field) bool { _, ok := f.Array.Flat.([]bool); return ok && f.Name == data.Mask }
	if rows, err := b.Rows(); err == nil && b.Size < rows && !slices.ContainsFunc(b.Fields, marked) {
		return fmt.Errorf("Batch.Size is %d examples, but the fields have %d rows, and no field %q says which count: the step's numbers would be of all rows. Take Batch.Slice(0, %[1]d), or data.Pad",
			b.Size, rows, data.Mask)
	}
	return nil
}

// wants is how a step is to have the state. Metrics of a view are not the state's.
func (c *compiled) wants(view *View) way {
	if c.program.Rebuilds() {
		return building
	}
	if c.changesState(view) {
		return changing
	}
	return sharing
}

func (c *compiled) changesState(view *View) bool {
	for i, changes := range c.changes {
		if changes && (view == nil || c.metrics[i] == nil) {
			return true
		}
	}
	return false
}

// steps starts the steps of the batches that were taken, and waits for those before them.
func (c *compiled) steps(r *room, view *View) ([]loop.Logs, error) {
	state, on := c.state, &c.state.tail
	if view != nil && !c.changesState(view) {
		on = &view.tail
	}
	for i, v := range c.values {
		b, err := view.value(c, i)
		if err != nil {
			return nil, err
		}
		if b == nil {
			if c.changes[i] && len(state.pins) > 0 {
				if err := state.own(v); err != nil {
					return nil, err
				}
			}
			b = state.values[v].buffer
		}
		r.args[i] = b
	}
	changed, outputs, running, err := c.program.Start(r.args, r.batches)
	if err != nil {
		on.fails(err)
		return nil, err
	}
	for i, v := range c.values {
		if changed[i] != nil && !view.set(c, i, changed[i]) {
			state.values[v].buffer = changed[i]
		}
	}
	logs, err := c.logs(outputs, len(r.batches))
	if err = errors.Join(err, on.follow(running)); err != nil {
		return nil, err
	}
	return logs, nil
}

// logs makes the logs of n steps.
func (c *compiled) logs(outputs []strategies.Buffer, n int) (logs []loop.Logs, err error) {
	state := c.state
	logs = make([]loop.Logs, n)
	if len(c.layout) > 0 {
		var p *packed
		p, logs = newLogs(state.strategy, outputs[0], c.layout, n)
		err = state.unread.add(&p.remote)
		outputs = outputs[1:]
	}
	for i, w := range c.wholes { // then n is 1
		o := &output{remote{device: &onDevice{strategy: state.strategy, buffer: outputs[i]}}}
		logs[0].Set(w.collection, w.name, o)
		err = errors.Join(err, state.unread.add(&o.remote))
	}
	return logs, err
}

// Entries are the full names of what the step logs, as "losses.loss", as it was compiled last; nil before.
func (s *Stepper) Entries() (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.compiled) == 0 {
		return nil
	}
	c := s.compiled[len(s.compiled)-1]
	for _, l := range slices.Concat(c.layout, c.wholes) {
		paths = append(paths, loop.Entry{Collection: l.collection, Name: l.name}.Path())
	}
	return paths
}

// StableHLO gives the programs that the step was compiled to, one for each state and each shape of batch that it met.
func (s *Stepper) StableHLO() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	programs := make([]string, len(s.compiled))
	for i, c := range s.compiled {
		programs[i] = c.program.StableHLO()
	}
	return programs
}

// CompileTime is how long the plugin took to compile them.
func (s *Stepper) CompileTime() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum time.Duration
	for _, c := range s.compiled {
		sum += c.program.CompileTime()
	}
	return sum
}

// Close waits for the steps that are being made and frees the compiled programs; the step can still be used and compiles again.
func (s *Stepper) Close() error {
	var errs []error
	for _, c := range s.drop(func(*compiled) bool { return true }) {
		errs = append(errs, c.giveUp())
	}
	return gate.Once(errors.Join(errs...))
}
