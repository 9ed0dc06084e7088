package strategies_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	goruntime "runtime"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// here is the position of a line of this file, as in errors: the caller's, plus below.
func here(below int) string {
	_, file, line, _ := goruntime.Caller(1)
	return fmt.Sprintf("strategies/%s:%d", filepath.Base(file), line+below)
}

// A step that fails half way leaves the state as it was, and nothing on the device.
func TestF14_eagerStepFailsHalfWay(t *testing.T) {
	r, batch := cpu(t), points(t, 12)
	var fault func(h *graph.Node)
	broken := func(b *managed.Builder) {
		mlp(b)
		if fault != nil {
			fault(b.Field("x"))
		}
	}
	eager := newTraining(t, strategies.Eager(r, strategies.CheckFinite), broken)
	defer eager.close()
	eager.step(eager.train, batch)
	where := ""
	for _, row := range []struct {
		name  string
		fault func(x *graph.Node)
		want  string
	}{
		{"a panic", func(*graph.Node) {
			where = here(1)
			panic(errors.New("boom"))
		}, "boom"},
		{"a wrong shape", func(x *graph.Node) {
			other := graph.Ones(x.Graph(), shapes.Make(dtypes.Float32, 4, 3))
			where = here(1)
			graph.Dot(x, other).Product()
		}, "[12, 5]"},
		{"NaN", func(x *graph.Node) {
			where = here(1)
			graph.Log(graph.SubScalar(x, 2))
		}, "Log((Float32)[12, 5]) -> (Float32)[12, 5] is the first to make NaN"},
		{"a reader's own error", func(x *graph.Node) {
			v, err := xla.Value(x)
			if err != nil {
				return
			}
			where = here(1)
			panic(fmt.Errorf("the first is %v", v.Value().([][]float32)[0][0]))
		}, "the first is 0.84147"},
	} {
		t.Run(row.name, func(t *testing.T) {
			before, live := eager.values(), pjrt.Live().Buffers
			fault = row.fault
			_, _, err := eager.train.Step(t.Context(), eager.state, batch)
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, err, where)
			t.Log(err)
			require.Equal(t, live, pjrt.Live().Buffers)
			for name, v := range eager.values() {
				require.True(t, v.Equal(before[name]), name)
			}
			fault = nil
			eager.step(eager.train, batch)
		})
	}
}

// The gradient of a square root at 0 is infinite. The operation has no line of its own in the user's code; those of its
// operands do.
func TestCheckFinite_findsTheFirstInAGradient(t *testing.T) {
	where := ""
	build := func(b *managed.Builder) {
		weights := b.Scope().VariableWithValue("w", []float32{0, 1}).NodeValue(b.Graph())
		where = here(1)
		root := graph.Sqrt(weights)
		root = graph.MulScalar(graph.Neg(root), -2)
		b.Loss("loss", graph.ReduceAllMean(root))
	}
	eager := newTraining(t, strategies.Eager(cpu(t), strategies.CheckFinite), build)
	defer eager.close()
	_, _, err := eager.train.Step(t.Context(), eager.state, points(t, 12))
	var first *xla.NotFiniteError
	require.ErrorAs(t, err, &first)
	require.False(t, first.NaN)
	require.Contains(t, first.From, where)
	require.Equal(t, []float32{0, 1}, flat(t, eager.values()["/w"]))
	t.Log(err)
}

// NaN in a value of the initial state, as from a failed run, is reported with the variable's name.
func TestCheckFinite_namesTheVariable(t *testing.T) {
	eager := newTraining(t, strategies.Eager(cpu(t), strategies.CheckFinite), func(b *managed.Builder) {
		weights := b.Scope().VariableWithValue("w", []float32{float32(math.NaN()), 1}).NodeValue(b.Graph())
		b.Loss("loss", graph.ReduceAllMean(weights))
	})
	defer eager.close()
	_, _, err := eager.train.Step(t.Context(), eager.state, points(t, 12))
	var first *xla.NotFiniteError
	require.ErrorAs(t, err, &first)
	require.Contains(t, first.Parameter, "w")
	require.True(t, first.NaN)
	t.Log(err)
}

func flat(t *testing.T, v *tensors.Tensor) []float32 {
	t.Helper()
	numbers, err := tensors.CopyFlatData[float32](v)
	require.NoError(t, err)
	return numbers
}
