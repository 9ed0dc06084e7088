package graphs

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"
)

// TestHint makes the mistakes, to find hints whose words GoMLX has changed.
func TestHint(t *testing.T) {
	backend, err := gobackend.New("")
	require.NoError(t, err)
	defer backend.Finalize()
	scope := func() *model.Scope { return model.NewStore().RootScope() }
	input := func(name string, dims ...int) *graph.Node {
		g := graph.NewGraph(backend, name)
		t.Cleanup(g.Finalize)
		return graph.Parameter(g, "x", shapes.Make(dtypes.Float32, dims...))
	}
	mistakes := map[string]func(){
		"already visited from": func() {
			s, x := scope(), input("g", 2, 3)
			layers.Dense(s, layers.Dense(s, x, true, 3), true, 3)
		},
		"not yet visited from": func() { scope().Shared("a") },
		"for which no gradient is defined": func() {
			x := input("g", 3)
			graph.Gradient(graph.ReduceAllSum(graph.Sort(x, 0, true)), x)
		},
		"requested to reuse variable": func() {
			s, x := scope(), input("g", 2, 3)
			layers.Dense(s.In("a"), x, true, 3)
			layers.Dense(s.At("a"), x, true, 4)
		},
		"combining nodes from different graphs": func() { graph.Add(input("one", 2), input("other", 2)) },
		"already compiled and can't be used for building": func() {
			x := input("g", 2)
			require.NoError(t, x.Graph().Compile(x))
			graph.Neg(x)
		},
		"has already returned or been compiled": func() {
			x := input("g", 2)
			x.Function().Return([]*graph.Node{x}, nil)
			graph.Neg(x)
		},
		"is part of a different graph": func() { _ = input("g", 2).Graph().Compile(input("other", 2)) },
		"has been finalized already": func() {
			x := input("g", 2)
			x.Graph().Finalize()
			graph.Neg(x)
		},
		"match original": func() { graph.Reshape(input("g", 2, 3), -1, 5) },
		"Convolution requires Filters and KernelSize": func() {
			layers.Convolution(scope().In("conv"), input("g", 2, 3)).Channels(4).KernelSize(3).Done()
		},
	}
	for _, h := range hints {
		t.Run(h.words, func(t *testing.T) {
			require.Contains(t, mistakes, h.words)
			err := Catch(func() { panic(Catch(mistakes[h.words])) })
			require.ErrorContains(t, err, h.words)
			require.Equal(t, 1, strings.Count(err.Error(), "\n  hint: "+h.hint))
		})
	}
	require.NotContains(t, Catch(func() { broken(0) }).Error(), "hint")
	t.Run("R41: another type, as under a policy", func(t *testing.T) {
		s := scope()
		for name, dims := range map[string][]int{"scalar": nil, "vector": {3}, "table": {3, 4}} {
			s.In("%s", name).VariableWithShape("weights", shapes.Make(dtypes.BFloat16, dims...))
			err := Catch(func() { s.At("%s", name).VariableWithShape("weights", shapes.Make(dtypes.Float32, dims...)) })
			require.ErrorContains(t, err, "\n  hint: the variable exists with another dtype: under a policy")
		}
	})
}

// A message of GoMLX has the function that was called, unless it names an operation.
func TestOperation(t *testing.T) {
	backend, err := gobackend.New("")
	require.NoError(t, err)
	defer backend.Finalize()
	g := graph.NewGraph(backend, "g")
	defer g.Finalize()
	x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2, 3))
	for want, f := range map[string]func(){
		": Reshape: total requested size 20":        func() { graph.Reshape(x, 4, 5) },
		": ReduceSum: x's axis #0":                  func() { graph.ReduceSum(x, 7) },
		": PoolBuilder.Done: Input x must":          func() { graph.MaxPool(x).Window(2).Done() },
		": Concatenate operand #1":                  func() { graph.Concatenate([]*graph.Node{x, graph.Reshape(x, 6)}, 0) },
		": Where(condition, onTrue, onFalse) requi": func() { graph.Where(x, x, x) },
		": own": func() { panic("own") },
	} {
		err := Catch(f)
		require.ErrorContains(t, err, "hint_test.go")
		require.ErrorContains(t, err, want)
	}
}
