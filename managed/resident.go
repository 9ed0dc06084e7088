package managed

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/strategies"
)

// dataPrefix begins the names of a graph's parameters that are fields of a set on the device.
const dataPrefix = "data:"

// reside gives a set's fields where the strategy keeps them; it moves a set that is not there yet.
func (s *storage) reside(set *data.Resident) (buffers []strategies.Buffer, err error) {
	if set == nil {
		return nil, nil
	}
	if buffers, there := s.resident[set]; there {
		return buffers, nil
	}
	for _, f := range set.Fields() {
		t, err := tensorOf(f.Array)
		var b strategies.Buffer
		if err == nil {
			b, err = s.strategy.Put(dataPrefix+f.Name, t)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("move field %q of the set, %s %v, to the device: %w", f.Name, f.Array.DType(), f.Array.Dims, err),
				s.strategy.Free(buffers...))
		}
		buffers = append(buffers, b)
	}
	s.resident[set] = buffers
	return buffers, nil
}

// leaveSets frees what the strategy has of sets.
func (s *storage) leaveSets() error {
	var errs []error
	for _, buffers := range s.resident {
		errs = append(errs, s.strategy.Free(buffers...))
	}
	clear(s.resident)
	return errors.Join(errs...)
}

// tensorOf copies an array.
func tensorOf(a data.Array) (*Tensor, error) {
	t := tensors.FromShape(shapes.Make(strategies.DTypeOf(a), a.Dims...))
	return t, t.MutableFlatData(func(flat any) { reflect.Copy(reflect.ValueOf(flat), reflect.ValueOf(a.Flat)) })
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
			whole := graph.Parameter(g, dataPrefix+f.Name, shapes.Make(strategies.DTypeOf(f.Array), f.Array.Dims...))
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
