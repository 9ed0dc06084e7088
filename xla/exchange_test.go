package xla_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/xla"
)

// gathered has metrics of each form: sums, moments, extremes, fewer bins than examples and more.
func gathered() metrics.Collection {
	both, scored, curve := []string{"a", "b"}, []string{"labels", "scores"}, []string{"truth", "a"}
	c := metrics.Collection{
		{Name: "mean", Metric: metrics.Mean(), Inputs: both[:1]},
		{Name: "of vectors", Metric: metrics.Mean(), Inputs: scored[1:]},
		{Name: "sum", Metric: metrics.Sum(), Inputs: both[:1]},
		{Name: "deviation", Metric: metrics.StandardDeviation(), Inputs: both[:1]},
		{Name: "min", Metric: metrics.Min(), Inputs: both[:1]},
		{Name: "max", Metric: metrics.Max(), Inputs: both[:1]},
		{Name: "last", Metric: metrics.Last(), Inputs: both[:1]},
		{Name: "r2", Metric: metrics.R2(1), Inputs: both},
		{Name: "concordance", Metric: metrics.Concordance(1), Inputs: both},
		{Name: "accuracy", Metric: metrics.Accuracy(), Inputs: scored},
		{Name: "entropy", Metric: metrics.CrossEntropy(), Inputs: scored},
		{Name: "top", Metric: metrics.TopK(2), Inputs: scored},
		{Name: "confusion", Metric: metrics.ConfusionMatrix(3), Inputs: scored},
		{Name: "scores", Metric: metrics.ClassScores(3, metrics.Macro), Inputs: scored},
		{Name: "iou", Metric: metrics.MeanIoU(3), Inputs: scored},
		{Name: "auc", Metric: metrics.AUC(10), Inputs: curve},
		{Name: "fine auc", Metric: metrics.AUC(2000), Inputs: curve},
	}
	for i := range c {
		c[i].Weights = "weights"
	}
	return c
}

// gatheredFields returns the fields that the metrics take, for n examples.
func gatheredFields(n int) (names []string, of []shapes.Shape) {
	return []string{"weights", "labels", "truth", "a", "b", "scores"}, []shapes.Shape{
		shapes.Make(dtypes.Bool, n), shapes.Make(dtypes.Int32, n), shapes.Make(dtypes.Int32, n),
		shapes.Make(dtypes.Float32, n), shapes.Make(dtypes.Float32, n), shapes.Make(dtypes.Float32, n, 3),
	}
}

// GPUs gather metrics from all devices, because they do not reduce 64-bit numbers; results equal those of one device.
// The compilers for TPUs and CPUs reduce them exactly.
//
//lazo:norace
func TestCompileOver_gathersWideNumbers(t *testing.T) {
	const s64, u64, f64, examples = 5, 9, 12, 64
	c := gathered()
	names, of := gatheredFields(examples)
	build := func(block int) func(g *graph.Graph) xla.Built {
		return func(g *graph.Graph) xla.Built {
			built := xla.Built{InPlace: map[int]int{}, Block: block}
			var acc []*graph.Node
			for i, a := range c.Accumulators() {
				acc = append(acc, graph.Parameter(g, "/"+a.Name, a.Shape))
				built.InPlace[i] = i
			}
			fields := map[string]*graph.Node{}
			for i, name := range names {
				fields[name] = graph.Parameter(g, "batch/"+name, of[i])
				built.Host = append(built.Host, len(acc)+i)
			}
			built.Outputs = c.Update(acc, fields)
			for _, v := range c.Compute(built.Outputs) {
				built.Outputs = append(built.Outputs, graph.Reshape(v.Node, v.Node.Shape().Size()))
			}
			built.Outputs = append(built.Outputs, graph.ReduceAllSum(graph.ConvertDType(fields["weights"], dtypes.Int64)))
			return built
		}
	}
	split := func(name string, _ shapes.Shape) xla.Split {
		if strings.HasPrefix(name, "batch/") {
			return xla.Split{{"data"}}
		}
		return nil
	}
	random := rand.New(rand.NewPCG(3, 4))
	batch := make([]any, len(of))
	for i, s := range of {
		switch s.DType {
		case dtypes.Bool:
			batch[i] = drawn(s.Size(), func() bool { return random.IntN(4) > 0 })
		case dtypes.Int32:
			batch[i] = drawn(s.Size(), func() int32 { return random.Int32N(2) })
		default:
			batch[i] = drawn(s.Size(), random.Float32)
		}
	}
	var want [][]float64
	for _, row := range []struct {
		kind           string
		devices, block int
		reduces        bool
	}{{xla.CPU, 1, 1, false}, {xla.CPU, 2, 1, true}, {xla.CUDA, 2, 1, false}, {xla.CUDA, 4, 1, false}, {xla.CUDA, 4, 3, false}} {
		t.Run(fmt.Sprintf("%s, %d devices, blocks of %d", row.kind, row.devices, row.block), func(t *testing.T) {
			r := plugintest.Devices(t, row.devices)
			xla.WrittenFor(r, row.kind)
			place := xla.Placement{Mesh: xla.Mesh{Axes: []xla.MeshAxis{{Name: "data", Size: row.devices}}}, Split: split}
			p, err := r.CompileOver(place, "metrics", build(row.block))
			require.NoError(t, err)
			defer func() { require.NoError(t, p.Close()) }()
			list, err := xla.Instructions(p)
			require.NoError(t, err)
			seen, reduces := map[string]int{}, false
			for _, in := range list {
				for _, op := range []string{"all-reduce", "reduce-scatter", "all-gather", "collective-permute", "all-to-all"} {
					if strings.HasPrefix(in.Op, op) {
						seen[fmt.Sprint(op, in.Types)]++
						wide := slices.ContainsFunc(in.Types, func(t uint64) bool { return t == s64 || t == u64 || t == f64 })
						reduces = reduces || wide && strings.Contains(op, "reduce")
					}
				}
			}
			t.Logf("%d instructions; exchanges: %v", len(list), seen)
			require.Equal(t, row.reduces, reduces, "a reduction of numbers of 64 bits between devices")
			require.Equal(t, row.devices > 1, len(seen) > 0)
			if row.block > 1 {
				return
			}
			var inputs []compute.Buffer
			var host []any
			for d := range row.devices {
				for _, a := range c.Accumulators() {
					b, err := r.BufferFromFlatData(compute.DeviceNum(d), slices.Repeat([]float64{a.Initial}, a.Shape.Size()), a.Shape)
					require.NoError(t, err)
					inputs = append(inputs, b)
				}
				inputs = append(inputs, make([]compute.Buffer, len(batch))...)
				for i := range batch {
					host = append(host, partOf(batch[i], d, row.devices))
				}
			}
			outputs, err := p.Run(inputs, host)
			require.NoError(t, err)
			var got [][]float64
			for i, b := range append(slices.DeleteFunc(inputs, func(b compute.Buffer) bool { return b == nil }), outputs...) {
				shape, err := b.Shape()
				require.NoError(t, err)
				if shape.DType == dtypes.Float64 {
					flat := make([]float64, shape.Size())
					require.NoError(t, b.ToFlatData(flat), i)
					got = append(got, flat)
				} else {
					count := []int64{0}
					require.NoError(t, b.ToFlatData(count))
					got = append(got, []float64{float64(count[0])})
				}
				require.NoError(t, b.Finalize())
			}
			if want == nil {
				want = got
				return
			}
			n, values := len(c.Accumulators()), len(want)-len(c.Accumulators())
			for i := range got { // each device has all
				of := i % n
				if i >= row.devices*n {
					of = n + (i-row.devices*n)%values
				}
				require.Len(t, got[i], len(want[of]))
				for j := range got[i] {
					require.InDelta(t, want[of][j], got[i][j], 1e-12*max(1, math.Abs(want[of][j])), "value %d", of)
				}
			}
		})
	}
}

func drawn[T any](n int, draw func() T) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = draw()
	}
	return list
}

// partOf returns a device's part of a slice.
func partOf(slice any, device, devices int) any {
	v := reflect.ValueOf(slice)
	n := v.Len() / devices
	return v.Slice(device*n, (device+1)*n).Interface()
}
