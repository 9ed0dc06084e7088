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
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed/internal/store"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

type compiled struct {
	step     *Stepper
	state    *State
	moves    int // the state's at compilation
	runtime  *xla.Runtime
	inputs   []strategies.Input
	building context.Context
	resident *data.Resident
	program  strategies.Program
	block    int // requested steps per run
	values   []int
	layout   []logged
	wholes   []logged
	// cast is nil before the first build.
	cast    []*model.Variable
	changed []bool
	metrics []*metrics.Accumulator
	claim   int // the step's on the state's metrics; 0 without metrics
	seen    int // gathering.changes at the last check
	sets    []compute.Buffer
	spare   sync.Pool
	used    int64 // at the last use
	// open: the program depends on the number of variables.
	open      bool
	variables int
	equal     []int // packs with scalars assumed equal
}

type logged struct {
	collection loop.Collection
	name       string
	node       *graph.Node
}

// stale: the state moved, has new variables that matter, or unequal scalars assumed equal.
func (c *compiled) stale() bool {
	return c.moves != c.state.values.Moves() || c.open && c.variables != c.state.values.Len() || c.apart()
}

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

// counts refuses unmarked padding.
func (c *compiled) counts(b *data.Batch) error {
	if b.Size == 0 || len(c.layout) == 0 || len(b.Fields) == 0 {
		return nil
	}
	if dims := b.Fields[0].Array.Dims; len(dims) > 0 && b.Size == dims[0] {
		return nil
	}
	// Size decides which first axis counts the examples.
	marked := func(f data.Field) bool { _, ok := f.Array.Flat.([]bool); return ok && f.Name == data.Mask }
	if rows, err := b.Rows(); err == nil && b.Size < rows && !slices.ContainsFunc(b.Fields, marked) {
		return fmt.Errorf("Batch.Size is %d examples, but the fields have %d rows, and no field %q marks the examples: the step would compute with all rows. Use Batch.Slice(0, %[1]d), or data.Pad",
			b.Size, rows, data.Mask)
	}
	return nil
}

func (c *compiled) giveUp() error {
	if c.state.values.EnterValues(context.Background(), true) == nil {
		defer c.state.values.LeaveValues(true)
	}
	return c.close()
}

func (c *compiled) dumped(s *Stepper) dumped { return dumped{s.name, c.program.StableHLO()} }

// close: a closed runtime has freed the program.
func (c *compiled) close() error {
	err := c.program.Close()
	if c.moves != c.state.values.Moves() && c.runtime.IsFinalized() {
		return nil
	}
	return err
}

// cache has its own lock: a step serves many states.
type cache struct {
	mu       sync.Mutex
	compiled []*compiled
	uses     int64
}

// lookup's caller shares the state's values or holds its structure.
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

func (k *cache) each(look func(*compiled)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.compiled {
		look(c)
	}
}

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
	// Set and padding may each have a mask.
	if first, last := slices.Index(names, data.Mask), len(names)-1; first >= 0 && first != last && names[last] == data.Mask {
		nodes[first] = graph.LogicalAnd(nodes[first], nodes[last])
		names, nodes = names[:last], nodes[:last]
	}
	return names, nodes, sets
}
