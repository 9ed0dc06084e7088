package managed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed/internal/store"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// compiled is a step for one state and one shape of batch.
type compiled struct {
	state   *State
	moves   int // the state's, when it was compiled
	runtime *xla.Runtime
	inputs  []strategies.Input
	// resident is the set that the batch has rows of; nil if the batch comes from the host.
	resident *data.Resident
	program  strategies.Program
	block    int // how many steps were asked for at once: 1 for [Stepper.Step]
	// values are the places in the store of the program's state.
	values []int
	layout []logged
	wholes []logged
	// cast are the variables that a policy casts; nil before the first build.
	cast []*model.Variable
	// changed says which of the values the program changes, metrics which of them gather a metric, nil for the others.
	changed []bool
	metrics []*metrics.Accumulator
	// sets are those of the resident set, which the program is given behind the state's values.
	sets []compute.Buffer
	// spare are *arguments, for the runs that are being made.
	spare sync.Pool
	used  int64 // when, in the cache's count of uses
	// open tells that what was built depends on which variables the state has; it had so many.
	open      bool
	variables int
	equal     []int // the places of packs whose scalars it takes to be equal
}

// stale reports whether the step is to be compiled again: the state has moved to another strategy, has more variables
// than a step that depends on them was built with, or scalars that differ where the step was built for equal ones.
func (c *compiled) stale() bool {
	return c.moves != c.state.values.Moves() || c.open && c.variables != c.state.values.Len() || c.apart()
}

// apart reports whether the scalars of a pack may differ that the program takes to be equal.
func (c *compiled) apart() bool { return slices.ContainsFunc(c.equal, c.state.values.Apart) }

func (c *compiled) fits(batch data.Batch) bool {
	if len(c.inputs) != len(batch.Fields) || c.resident != batch.Resident {
		return false
	}
	for i := range batch.Fields {
		if in, f := &c.inputs[i], &batch.Fields[i]; in.Name != f.Name || in.Of != batch.Part.Of || !in.Takes(f.Array) {
			return false
		}
	}
	return true
}

// needs is how a step is to have the state.
func (c *compiled) needs(view *View) hold {
	if c.program.Rebuilds() {
		return holdAll
	}
	if c.changesState(view) {
		return holdValues
	}
	return shareValues
}

// changesState tells whether a run changes values that the gate of the state's values guards. Metrics of a view are not
// among them, those of an evaluation are.
func (c *compiled) changesState(view *View) bool {
	for i, changed := range c.changed {
		if changed && (view == nil || view.live || c.metrics[i] == nil) {
			return true
		}
	}
	return false
}

// counts refuses a batch whose Size leaves out rows that nothing marks as padding, where numbers are reported: those
// would be of all rows.
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

// giveUp closes the program when nobody runs it.
func (c *compiled) giveUp() error {
	if c.state.values.EnterValues(context.Background(), true) == nil {
		defer c.state.values.LeaveValues(true)
	}
	return c.close()
}

func (c *compiled) dumped(s *Stepper) dumped { return dumped{s.name, c.program.StableHLO()} }

// close closes the program. That of a state that has moved away went with its runtime, if that was closed.
func (c *compiled) close() error {
	err := c.program.Close()
	if c.moves != c.state.values.Moves() && c.runtime.IsFinalized() {
		return nil
	}
	return err
}

// cache is what a step was compiled to. It has a lock of its own, since a step serves many states.
type cache struct {
	mu       sync.Mutex
	compiled []*compiled
	uses     int64
}

// lookup gives the compiled form for a state and a batch, with so many steps at once; nil if there is none. The state's
// values are shared, or its structure is held.
func (k *cache) lookup(state *State, batch data.Batch, block int) *compiled {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.compiled {
		if c.state == state && !c.stale() && c.block == block && c.fits(batch) {
			k.uses++
			c.used = k.uses
			return c
		}
	}
	return nil
}

func (k *cache) add(c *compiled) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.uses++
	c.used = k.uses
	k.compiled = append(k.compiled, c)
}

// shapes counts the shapes of batches for which the step is compiled, and gives the form that was used longest ago.
func (k *cache) shapes(state *State, block int) (n int, oldest *compiled) {
	k.each(func(c *compiled) {
		if c.state != state || c.block != block {
			return
		}
		n++
		if oldest == nil || c.used < oldest.used {
			oldest = c
		}
	})
	return n, oldest
}

// each looks at all compiled forms, none of which is closed meanwhile.
func (k *cache) each(look func(*compiled)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.compiled {
		look(c)
	}
}

// drop takes compiled forms out of the cache, and then closes them.
func (k *cache) drop(which func(*compiled) bool, closeOne func(*compiled) error) error {
	var dropped []*compiled
	k.mu.Lock()
	k.compiled = slices.DeleteFunc(k.compiled, func(c *compiled) bool {
		if which(c) {
			dropped = append(dropped, c)
			return true
		}
		return false
	})
	k.mu.Unlock()
	var errs []error
	for _, c := range dropped {
		errs = append(errs, closeOne(c))
	}
	return errors.Join(errs...)
}

// fields are the names and nodes of what a batch has for a step. The rows of a set on the device become its fields,
// each a value that the program is given beside the state's.
func (c *compiled) fields(g *graph.Graph, batch []*graph.Node) (names []string, nodes []*graph.Node, sets []strategies.Slot) {
	for i, in := range c.inputs {
		if c.resident == nil || in.Name != data.Rows {
			names, nodes = append(names, in.Name), append(nodes, batch[i])
			continue
		}
		rows := graph.InsertAxes(batch[i], -1)
		for _, f := range c.resident.Fields() {
			whole := graph.Parameter(g, store.DataPrefix+f.Name, shapes.Make(store.DType(f.Array), f.Array.Dims...))
			sets = append(sets, strategies.Slot{Parameter: whole, Data: true})
			names, nodes = append(names, f.Name), append(nodes, graph.Gather(whole, rows))
		}
	}
	// A set may have a mask of its own, and a batch of it one of padding: an example counts that has both.
	if first, last := slices.Index(names, data.Mask), len(names)-1; first >= 0 && first != last && names[last] == data.Mask {
		nodes[first] = graph.LogicalAnd(nodes[first], nodes[last])
		names, nodes = names[:last], nodes[:last]
	}
	return names, nodes, sets
}
