package xla

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/internal/graphs"
)

// NewEager makes an Eager. It fails for [Go] ([ErrUnimplemented]) and a described machine ([ErrNotRun]).
func NewEager(on *Runtime) (*Eager, error) {
	if d, ok := on.Backend.(*described); ok {
		return nil, fmt.Errorf("xla: eager: %w: %s runs no operations: compile whole steps for it, by strategies.Jit or strategies.DataParallel", ErrNotRun, d.name)
	}
	c, ok := on.Backend.(*pjrtClient)
	if !ok {
		return nil, fmt.Errorf("xla: eager: %w: the plugin %q runs whole graphs only; open one of XLA's, such as %q", ErrUnimplemented, on.plugin.Kind, CPU)
	}
	return &Eager{runtime: on, on: c, keep: mostPrograms, programs: map[string]*eagerProgram{}}, nil
}

// A program takes about 120 kB on the CPU. A training step needs up to 200.
const mostPrograms = 1024

// Run calls build with an eager graph and returns the values of its nodes, nil for nil, which the caller owns. inputs
// are the parameters by name; they stay unchanged. An error leaves nothing. Nodes are invalid after Run.
func (e *Eager) Run(name string, inputs map[string]compute.Buffer, build func(g *graph.Graph) []*graph.Node) (outputs []compute.Buffer, err error) {
	if e.runtime.closed.Load() {
		return nil, during(errClosed, "run %s", name)
	}
	r := &eagerRun{Runtime: e.runtime, eager: e, inputs: inputs, state: map[compute.Buffer]finiteness{}, lines: map[compute.Buffer]string{}}
	g := graph.NewGraph(r, name)
	if caught := graphs.Catch(func() { outputs, err = r.take(build(g)) }); caught != nil {
		err = caught
		if first := (*NotFiniteError)(nil); errors.As(err, &first) {
			err = first
		}
	}
	g.Finalize()
	if freeErr := r.free(); freeErr != nil {
		err = errors.Join(err, freeErr)
	}
	if err != nil {
		for _, b := range outputs {
			if b != nil {
				err = errors.Join(err, b.Finalize())
			}
		}
		return nil, during(err, "run %s operation by operation", name)
	}
	return outputs, nil
}

var errNoValue = errors.New("the node has no value")

// Value waits for a node's value and copies it to the host. It is an error outside the build function of [Eager.Run].
func Value(n *graph.Node) (*tensors.Tensor, error) {
	if n == nil || n.Graph() == nil {
		return nil, fmt.Errorf("xla: %w: it is nil", errNoValue)
	}
	var t *tensors.Tensor
	err := graphs.Catch(func() {
		of := n.Graph().Backend()
		r, ok := of.(*eagerRun)
		switch {
		case of == nil:
			panic(fmt.Errorf("%w: its run is over", errNoValue))
		case !ok:
			panic(fmt.Errorf("%w: its graph %q is not run operation by operation", errNoValue, n.Graph().Name()))
		}
		b, err := r.buffer(n)
		if err != nil {
			panic(err)
		}
		t = tensors.FromShape(n.Shape())
		var copyErr error
		if err = t.MutableFlatData(func(flat any) { copyErr = b.ToFlatData(flat) }); err == nil {
			err = copyErr
		}
		if err != nil {
			panic(err)
		}
	})
	if err != nil {
		return nil, during(err, "value of a node")
	}
	return t, nil
}

// IsEager reports whether [Value] can read the graph's nodes.
func IsEager(g *graph.Graph) bool {
	_, eager := g.Backend().(*eagerRun)
	return eager
}
