package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// valued is a state that is nothing but values.
type valued struct {
	params  checkpoint.Params
	tensors []checkpoint.Tensor
	metrics map[string]float64
	runsOn  map[string]string
}

func (v *valued) Content(context.Context) (checkpoint.Content, error) {
	return checkpoint.Content{Tensors: v.tensors, Metrics: v.metrics, Sections: map[string]any{"params": v.params}}, nil
}

func (v *valued) Restore(_ context.Context, c *checkpoint.Checkpoint) error {
	v.tensors, v.metrics = c.Tensors, c.Metrics
	return c.Section("params", &v.params)
}

func (v *valued) Versions() map[string]string { return v.runsOn }

// saveOnce runs one step from somewhere, that logs these numbers, and saves.
func saveOnce(t T, f *checkpoint.Folder, state *valued, from loop.Elapsed, logged []float64, options ...checkpoint.Options) {
	t.Helper()
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, v *valued, _ int64) (*valued, loop.Logs, error) {
		var logs loop.Logs
		for i, x := range logged {
			logs.Set(loop.Metrics, fmt.Sprint("entry", i), x)
		}
		return v, logs, nil
	})))
	one := func(int64) iter.Seq2[int64, error] {
		return func(yield func(int64, error) bool) { yield(0, nil) }
	}
	_, err := l.Run(context.Background(), state, loop.From(one), loop.Continue(from, nil), saves(f, loop.EachStep, options...))
	require.NoError(t, err)
}

// All values of a run are restored to the last bit: the state's sections and tensors, the values of Also, metrics, the
// elapsed counts, and the numbers of the history (in which all NaN are one).
func TestF40_valuesOfARun(t *testing.T) {
	number := rapid.OneOf(
		rapid.Map(rapid.Uint64(), math.Float64frombits),
		rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, 1 << 53}))
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "Größe 😀 <&>\u2028\x00\"\\", "\xff no UTF-8", strings.Repeat("ü", 1<<19)}))
	value := rapid.OneOf(number.AsAny(), text.AsAny(), rapid.Bool().AsAny(),
		rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, 1<<53 + 1})).AsAny(),
		rapid.OneOf(rapid.Uint64(), rapid.Just(uint64(math.MaxUint64))).AsAny(),
		rapid.Map(rapid.Uint32(), func(b uint32) any { return math.Float32frombits(b) }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) any { return append([]byte{}, b...) }),
		rapid.Just[any](nil))
	params := rapid.Map(rapid.MapOfN(rapid.String(), value, 0, 6), func(p map[string]any) checkpoint.Params { return p })
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		state := &valued{params: params.Draw(t, "params"), metrics: rapid.MapOfN(rapid.String(), number, 0, 4).Draw(t, "metrics")}
		for name, bits := range rapid.MapOfN(rapid.String(), rapid.SliceOfN(rapid.Uint64(), 0, 4), 0, 4).Draw(t, "tensors") {
			state.tensors = append(state.tensors, checkpoint.Tensor{Name: "t" + name, DType: safetensors.U64, Dims: []int{len(bits)}, Data: append([]byte{}, safetensors.Bytes(bits)...)})
		}
		also, logged := params.Draw(t, "also"), rapid.SliceOfN(number, 1, 4).Draw(t, "logged")
		from := loop.Elapsed{Steps: rapid.Int64Range(0, 1<<62-1).Draw(t, "steps"), Samples: rapid.Int64Range(0, 1<<62-1).Draw(t, "samples")}
		f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
		saveOnce(t, f, state, from, logged, checkpoint.Options{Also: map[string]any{"also": &also}})

		got := &valued{}
		var gotAlso checkpoint.Params
		start, err := looked(f, got, checkpoint.Options{Also: map[string]any{"also": &gotAlso}, Changed: func(d checkpoint.Difference) error { return errors.New(d.String()) }})
		require.NoError(t, err)
		require.Equal(t, from.Steps+1, start.Elapsed.Steps)
		require.Equal(t, from.Samples+1, start.Elapsed.Samples)
		for _, c := range []struct{ want, got checkpoint.Params }{{state.params, got.params}, {also, gotAlso}} {
			require.Len(t, c.got, len(c.want))
			for name := range c.want {
				same(t, c.want[name], c.got[name])
			}
			n += len(c.want)
		}
		require.Len(t, got.metrics, len(state.metrics))
		for name, x := range state.metrics {
			same(t, x, got.metrics[name])
		}
		require.ElementsMatch(t, state.tensors, got.tensors)
		for i, x := range logged {
			y, err := start.History.Last(fmt.Sprint("entry", i))
			require.NoError(t, err)
			if math.IsNaN(x) {
				require.True(t, math.IsNaN(y))
				continue
			}
			same(t, x, y)
		}
		n += len(state.metrics) + len(state.tensors) + len(logged)
		require.NoError(t, f.Close())
	})
	t.Logf("F40: %d values of runs (state, Also, metrics, tensors, history): each came back to the last bit", n)
}
