package autodiff_test

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

var dump = flag.String("dump", "", "write the counted programs into this folder, for testdata/jax_counts.py")

const reciprocal = "GoMLX multiplies by a reciprocal, which takes the same time as a division"

// allowances are the workloads that take more operations than JAX, and why.
var allowances = map[string]struct {
	more int
	why  string
}{
	"conv_groups":          {20, "a convolution per group, where JAX has one that is 15 times slower on a CPU"},
	"conv_batch_groups":    {8, "a convolution per group, where JAX has one that is slower on a CPU"},
	"cnn":                  {43, "the first convolution is written as a sum of products, which XLA's CPU computes faster; and as conv_same"},
	"conv_same":            {2, "the window of a kernel's gradient has rows of zeros, so that XLA's CPU uses all cores"},
	"max_pool":             {11, "the taps of the window one by one, where JAX has a select_and_scatter that is up to 100 times slower on a CPU"},
	"max_pool_overlapping": {60, "as max_pool, with 9 taps for 4"},
	"sum_pool_overlapping": {16, "the taps of the window one by one, where JAX has a reduce_window that is 5 times slower on a CPU"},
	"pow":                  {0, "as many as JAX; GoMLX has no guard for a base of 0"},
	"softplus":             {10, "GoMLX's forward function is longer"},
	"log1p":                {1, reciprocal},
	"sqrt":                 {1, reciprocal},
	"l2_norm":              {1, reciprocal},
	"rms_norm":             {1, reciprocal},
	"square":               {1, "a product for each side of x·x, which takes the same time"},
}

// TestGradientPrograms compares the programs of all workloads with GoMLX's rules and with lazo's: they compute the same
// gradients, and lazo's take no more operations than JAX.
func TestGradientPrograms(t *testing.T) {
	jax := jaxCounts(t)
	if *dump != "" {
		require.NoError(t, os.MkdirAll(*dump, 0o755))
	}
	backend := plugintest.CPU(t)
	var table strings.Builder
	defer func() { t.Logf("operations (elements) of GoMLX, lazo and JAX:\n%s", table.String()) }()
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			count := func(rules string, gradient func(node, ...node) []node) counts {
				p := lower(func(g *graph.Graph) []node {
					loss, wrt := w.loss(g)
					return append([]node{loss}, gradient(loss, wrt...)...)
				})
				if *dump != "" {
					require.NoError(t, os.WriteFile(filepath.Join(*dump, w.name+"."+rules+".mlir"), []byte(p), 0o644))
				}
				return p.counts(t)
			}
			before, after := count("gomlx", stockGradient), count("lazo", autodiff.Gradient)
			// Both gradients are compiled as one program, whose forward part they share.
			g := graph.NewGraph(backend, "gradients")
			defer g.Finalize()
			loss, wrt := w.loss(g)
			g.Compile(slices.Concat([]node{loss}, stockGradient(loss, wrt...), autodiff.Gradient(loss, wrt...))...)
			results := g.Run(randomInputs(g, positive[w.name])...)
			require.Len(t, results, 1+2*len(wrt))
			requireClose(t, results[1:1+len(wrt)], results[1+len(wrt):])
			require.Contains(t, jax, w.name, "run testdata/jax_counts.py --tsv")
			peer := jax[w.name]
			allowance, allowed := allowances[w.name]
			require.LessOrEqual(t, after.operations, peer.operations+allowance.more, "%v", after.byKind)
			if !allowed {
				require.LessOrEqual(t, after.operations, before.operations)
				require.LessOrEqual(t, after.elements, before.elements)
			}
			fmt.Fprintf(&table, "%-22s %3d (%9d) %3d (%9d) %3d (%9d)\n", w.name,
				before.operations, before.elements, after.operations, after.elements, peer.operations, peer.elements)
		})
	}
}

func jaxCounts(t *testing.T) map[string]counts {
	file, err := os.Open(filepath.Join("testdata", "jax.tsv"))
	require.NoError(t, err)
	defer file.Close()
	all := map[string]counts{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var name string
		var c counts
		if _, err := fmt.Sscan(lines.Text(), &name, &c.operations, &c.elements); err == nil {
			all[name] = c
		}
	}
	require.NotEmpty(t, all)
	return all
}

// randomInputs returns one value per parameter of g: floats in (-1, 1), or (0.1, 1) if positive, and integers below 10.
func randomInputs(g *graph.Graph, positive bool) []any {
	random := rand.New(rand.NewPCG(1, 2))
	inputs := make([]any, g.NumParameters())
	for i := range inputs {
		shape := g.GetParameterByHandle(graph.ParameterHandle(i)).Shape()
		if shape.DType == dtypes.Int32 {
			values := make([]int32, shape.Size())
			for j := range values {
				values[j] = random.Int32N(10)
			}
			inputs[i] = tensors.FromFlatDataAndDimensions(values, shape.Dimensions...)
			continue
		}
		values := make([]float32, shape.Size())
		for j := range values {
			values[j] = 0.1 + 0.9*random.Float32()
			if !positive && random.IntN(2) == 0 {
				values[j] = -values[j]
			}
		}
		inputs[i] = tensors.FromFlatDataAndDimensions(values, shape.Dimensions...)
	}
	return inputs
}

func requireClose(t *testing.T, want, got []*tensors.Tensor) {
	t.Helper()
	require.Len(t, got, len(want))
	var overall float64 // some gradients are 0 but for rounding
	for _, w := range want {
		for _, a := range tensors.MustCopyFlatData[float32](w) {
			overall = max(overall, math.Abs(float64(a)))
		}
	}
	for i := range want {
		a, b := tensors.MustCopyFlatData[float32](want[i]), tensors.MustCopyFlatData[float32](got[i])
		require.Len(t, b, len(a))
		var largest, difference float64
		for j := range a {
			require.False(t, math.IsNaN(float64(b[j])), "output %d, element %d", i, j)
			largest = max(largest, math.Abs(float64(a[j])))
			difference = max(difference, math.Abs(float64(a[j]-b[j])))
		}
		require.LessOrEqual(t, difference, 1e-4*largest+1e-6*overall, "output %d of %d", i, len(want))
	}
}

// TestTwoLayersTakeFiveDots counts operations: the program has no gradient that was not requested.
func TestTwoLayersTakeFiveDots(t *testing.T) {
	build := map[string]func(g *graph.Graph) (loss node, wrt []node){
		"frozen first layer": func(g *graph.Graph) (node, []node) {
			in := &inputs{g: g}
			x := graph.StopGradient(graph.DotProduct(in.fixed(8, 4), in.learned(4, 4)))
			return graph.ReduceAllSum(graph.DotProduct(x, in.learned(4, 4))), in.wrt
		},
	}
	for _, w := range workloads {
		build[w.name] = w.loss
	}
	for _, c := range []struct {
		name, workload, kind string
		gradient             func(node, ...node) []node
		want                 int
	}{
		{"by autodiff.Gradient", "mlp", "dot_general", autodiff.Gradient, 2 + 3},
		{"by graph.autodiff.Gradient", "mlp", "dot_general", graph.Gradient, 2 + 3},
		{"as GoMLX comes", "mlp", "dot_general", stockGradient, 2 + 3},
		{"no transpose", "mlp", "transpose", autodiff.Gradient, 0},
		{"by autodiff.Gradient", "frozen first layer", "dot_general", autodiff.Gradient, 2 + 1},
		{"by autodiff.Gradient", "cnn", "convolution", autodiff.Gradient, 1 + 3}, // the first one is written as a sum of products, for XLA's CPU
		{"by autodiff.Gradient", "cnn", "dot_general", autodiff.Gradient, 2 + 4},
	} {
		t.Run(c.workload+", "+c.name, func(t *testing.T) {
			p := lower(func(g *graph.Graph) []node {
				loss, wrt := build[c.workload](g)
				return append([]node{loss}, c.gradient(loss, wrt...)...)
			})
			require.Equal(t, c.want, p.written(t, c.kind))
			t.Logf("%s: %d", c.kind, c.want)
		})
	}
}
