package layering

import (
	"errors"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/graphs"
)

type step struct {
	Step
	err error
}

func (s step) Ended() error { return s.err }

type trace struct {
	Trace
	layers []string
}

func (r *trace) Layer(layer any, _, _ bool, scope *model.Scope, x *graph.Node, build Build) *graph.Node {
	r.layers = append(r.layers, Kind(layer))
	return build(scope, x)
}

type dense struct{}

func (dense) Apply(_ *model.Scope, x *graph.Node) *graph.Node { return graph.Neg(x) }

func square(_ *model.Scope, x *graph.Node) *graph.Node { return graph.Square(x) }

func input(t *testing.T, dims ...int) *graph.Node {
	backend, err := gobackend.New("")
	require.NoError(t, err)
	t.Cleanup(backend.Finalize)
	return graph.Parameter(graph.NewGraph(backend, "g"), "x", shapes.Make(dtypes.Float32, dims...))
}

func TestRun(t *testing.T) {
	x, scope := input(t, 2, 3), model.NewStore().RootScope()
	require.Nil(t, StepOf(x))
	require.Nil(t, TraceOf(x))
	require.NotNil(t, Run(dense{}, true, false, scope, x, dense{}.Apply), "without a step and a trace")
	seen := &trace{}
	SetTrace(x.Graph(), seen)
	Run(square, true, false, scope, x, square)
	require.Equal(t, []string{"square"}, seen.layers)
	err := graphs.Catch(func() {
		Run(dense{}, true, false, scope, x, func(*model.Scope, *graph.Node) *graph.Node { return nil })
	})
	require.ErrorContains(t, err, "the layer dense in / returned nil, expected a node")
	ended := errors.New("cancelled")
	SetStep(x.Graph(), step{err: ended})
	require.ErrorIs(t, graphs.Catch(func() { Run(dense{}, true, false, scope, x, dense{}.Apply) }), ended)
}

func TestKind(t *testing.T) {
	for want, layer := range map[string]any{"dense": dense{}, "square": square, "TestKind": func() {}} {
		require.Equal(t, want, Kind(layer))
	}
	require.Equal(t, "dense", Kind(&dense{}))
	require.Equal(t, "dense", Kind(dense{}.Apply))
	var nothing func()
	for layer, want := range map[any]bool{(*dense)(nil): true, dense{}: false} {
		require.Equal(t, want, IsNil(layer))
	}
	require.True(t, IsNil(nil))
	require.True(t, IsNil(nothing))
}

func TestHandOn(t *testing.T) {
	x := input(t, 2, 3, 4)
	mask := graph.Ones(x.Graph(), shapes.Make(dtypes.Bool, 2, 3))
	Masks(x)[x] = mask
	same := graph.Neg(x)
	HandOn(x, same)
	require.Same(t, mask, Masks(x)[same])
	for name, y := range map[string]*graph.Node{"two axes": graph.ReduceSum(x, -1), "other places": graph.Reshape(x, 2, 6, 2)} {
		HandOn(x, y)
		require.Nil(t, Masks(x)[y], name)
	}
	own := graph.Neg(x)
	Masks(x)[own] = nil // none
	HandOn(x, own)
	require.Nil(t, Masks(x)[own])
}
