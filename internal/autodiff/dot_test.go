package autodiff_test

import (
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// TestDotGradientIsTheAdjoint draws layouts of batch, contracting and free axes in any order, for both backends.
func TestDotGradientIsTheAdjoint(t *testing.T) {
	floats := []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.BFloat16}
	for _, c := range []struct {
		name  string
		open  func(testing.TB, ...xla.Option) *xla.Runtime
		types []dtypes.DType
		least int // GoMLX's Go backend has no empty arrays
	}{
		{"xla", plugintest.Uncached, append(floats, dtypes.Float16, dtypes.Complex64, dtypes.Complex128), 0},
		{"go", plugintest.Go, floats, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			backend, cases := c.open(t), 0
			rapid.Check(t, func(t *rapid.T) {
				size := rapid.IntRange(c.least, 4)
				batch := rapid.SliceOfN(size, 0, 3).Draw(t, "batch")
				contracting := rapid.SliceOfN(size, 0, 2).Draw(t, "contracting")
				lhs := newLayout(t, "lhs", batch, contracting, rapid.SliceOfN(size, 0, 3).Draw(t, "free of lhs"))
				rhs := newLayout(t, "rhs", batch, contracting, rapid.SliceOfN(size, 0, 3).Draw(t, "free of rhs"))
				dtype := rapid.SampledFrom(c.types).Draw(t, "dtype")
				sums, out := dtypes.InvalidDType, dtypes.InvalidDType
				if dtype.IsFloat() {
					sums = rapid.SampledFrom([]dtypes.DType{dtypes.InvalidDType, dtypes.Float32, dtypes.Float64}).Draw(t, "summed in")
					out = rapid.SampledFrom([]dtypes.DType{dtypes.InvalidDType, dtype, dtypes.Float32, dtypes.Float64}).Draw(t, "as")
				}
				bilinear(t, backend, dtype, lhs.dims, rhs.dims, func(a, b node) node {
					return graph.Dot(a, b).WithAccumulatorDType(sums).WithOutputDType(out).General(
						slices.Clone(lhs.contracting), slices.Clone(lhs.batch), slices.Clone(rhs.contracting), slices.Clone(rhs.batch))
				})
				cases++
			})
			t.Logf("%d layouts", cases)
		})
	}
}
