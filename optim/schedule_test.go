package optim_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/xla"
)

// schedules are the fixture's.
var schedules = map[string]optim.Schedule{
	"constant":        optim.Constant(0.3),
	"linear":          optim.Linear(0.5, 0.1, 40),
	"polynomial":      optim.Polynomial(1, 0.1, 2.5, 100),
	"exponential":     optim.ExponentialDecay(0.5, 0.5, 20),
	"step decay":      optim.StepDecay(0.5, 0.5, 20),
	"cosine":          optim.Cosine(0.5, 0.05, 100),
	"cosine restarts": optim.CosineRestarts(0.5, 0.05, 20),
	"one cycle":       optim.OneCycle(0.5, 100),
	"warm-up cosine":  optim.Linear(0, 1, 10).Then(10, optim.Cosine(1, 0.01, 100)),
	"piecewise":       optim.Constant(1).Then(10, optim.Constant(0.5)).Then(50, optim.Constant(0.05)),
	"join":            optim.Linear(0, 1, 20).Then(20, optim.Constant(1).Then(30, optim.Polynomial(1, 0, 2, 50))),
}

// inGraph computes a schedule for many steps in a program.
func inGraph(t require.TestingT, r *xla.Runtime, s optim.Schedule, steps []int64) []float32 {
	exec, err := graph.NewExec(r, func(at *graph.Node) *graph.Node { return s.Node(at, dtypes.Float32) })
	require.NoError(t, err)
	defer exec.Finalize()
	values := make([]float32, len(steps))
	for i, at := range steps {
		out, err := exec.Call1(at)
		require.NoError(t, err)
		values[i] = out.Value().(float32)
	}
	return values
}

// Each schedule has optax's values, on the host and in a program.
func TestSchedules_asOptax(t *testing.T) {
	r, f := plugintest.CPU(t), optax(t)
	require.Len(t, f.Schedules, len(schedules))
	for name, s := range schedules {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, s.Err())
			built := inGraph(t, r, s, f.Points)
			most := 0.0
			for i, at := range f.Points {
				want := f.Schedules[name][i]
				require.InDelta(t, want, s.At(at), 1e-6, "%s at %d on the host", s, at)
				require.InDelta(t, want, built[i], 1e-6, "%s at %d in a program", s, at)
				most = max(most, math.Abs(want-s.At(at)), math.Abs(want-float64(built[i])))
			}
			t.Logf("issue 6.4: optax %s, %s: %d values, at most %.1e apart", f.Optax, s, len(f.Points), most)
		})
	}
}

func TestInverseSqrt_isTheTransformers(t *testing.T) {
	const warm, peak = 50, 0.7
	s := optim.Linear(0, peak, warm).Then(warm, optim.InverseSqrt(peak, warm))
	for step := range int64(500) {
		want := peak * math.Sqrt(warm) * min(1/math.Sqrt(float64(step)), float64(step)*math.Pow(warm, -1.5)) // formula (3) of the paper
		require.InDelta(t, want, s.At(step), 1e-12, "step %d", step)
	}
}

// A schedule composed of random parts has the same values in a program as on the host.
func TestThen_law(t *testing.T) {
	r := plugintest.CPU(t)
	rapid.Check(t, func(t *rapid.T) {
		var lengths []int
		var parts []optim.Schedule
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			a, b := rapid.Float64Range(0.01, 2).Draw(t, "from"), rapid.Float64Range(0.01, 2).Draw(t, "to")
			n := rapid.IntRange(1, 30).Draw(t, "steps")
			s := rapid.SampledFrom([]optim.Schedule{
				optim.Constant(a), optim.Linear(a, b, n), optim.Polynomial(a, b, 1+b, n), optim.ExponentialDecay(a, b, n), optim.StepDecay(a, b, n),
				optim.Cosine(a, b, n), optim.CosineRestarts(a, b, n), optim.InverseSqrt(a, n), optim.OneCycle(a, n+4),
				optim.Constant(a).Then(n, optim.Constant(b)).Then(n+3, optim.Constant(a)),
			}).Draw(t, "schedule")
			parts, lengths = append(parts, s), append(lengths, rapid.IntRange(1, 20).Draw(t, "length"))
		}
		joined := parts[len(parts)-1]
		for i, part := range slices.Backward(parts[:len(parts)-1]) {
			joined = part.Then(lengths[i], joined)
		}
		steps := rapid.SliceOfN(rapid.Int64Range(0, 100), 8, 8).Draw(t, "at")
		for i, v := range inGraph(t, r, joined, steps) {
			at, here := steps[i], 0
			for here < len(parts)-1 && at >= int64(lengths[here]) {
				at -= int64(lengths[here])
				here++
			}
			want := parts[here].At(at)
			require.Equal(t, want, joined.At(steps[i]), "the part's own value")
			require.InDelta(t, want, v, 1e-4*want+1e-30) // a power of a hundred steps has as many roundings
		}
	})
}

// XLA divides by a constant by multiplying with its inverse, which may move a step across a border.
func TestStepDecay_atItsBorders(t *testing.T) {
	r, borders := plugintest.CPU(t), 0
	for _, n := range []int{41, 47, 55, 61, 82, 83} {
		var at []int64
		for k := range int64(30) {
			at = append(at, k*int64(n), k*int64(n)+int64(n)-1)
		}
		decay, restarts := inGraph(t, r, optim.StepDecay(1, 0.5, n), at), inGraph(t, r, optim.CosineRestarts(1, 0, n), at)
		for i := range at {
			require.Equal(t, float32(math.Pow(0.5, float64(i/2))), decay[i], "%d steps each, at %d", n, at[i])
			if i%2 == 0 {
				require.Equal(t, float32(1), restarts[i], "%d steps each, at %d", n, at[i])
			} else {
				require.Less(t, restarts[i], float32(0.01))
			}
		}
		borders += len(at)
	}
	t.Logf("%d values beside a border, 0 on the wrong side", borders)
}

func TestSchedules_refuse(t *testing.T) {
	for _, row := range []struct {
		name     string
		schedule optim.Schedule
		want     string
	}{
		{"empty", optim.Schedule{}, "optim: the schedule is empty: make it with Constant, Cosine, …"},
		{"constant", optim.Constant(math.NaN()), "optim: schedule constant NaN: the value NaN, expected a finite one"},
		{"no steps", optim.Cosine(1, 0, 0), "optim: schedule cosine 1 to 0 in 0: 0 steps, expected 1 or more"},
		{"power", optim.Polynomial(1, 0, -1, 5), "optim: schedule polynomial 1 to 0 in 5, power -1: the power -1, expected a positive, finite number"},
		{"factor", optim.StepDecay(1, 0, 5), "optim: schedule steps from 1, ×0 in 5: the factor 0, expected a positive, finite number"},
		{"one cycle", optim.OneCycle(1, 3), "optim: schedule one cycle to 1 in 3: 3 steps, expected 4 or more"},
		{"a part", optim.Constant(1).Then(0, optim.Schedule{}), "optim: schedule constant 1 for 0, then : part 2: the schedule is empty: make it with Constant, Cosine, …; 0 steps, expected 1 or more"},
		{"the first part", optim.Cosine(1, 0, 0).Then(5, optim.Constant(1)), "optim: schedule cosine 1 to 0 in 0 for 5, then constant 1: part 1: schedule cosine 1 to 0 in 0: 0 steps, expected 1 or more"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.EqualError(t, row.schedule.Err(), row.want)
			require.True(t, math.IsNaN(row.schedule.At(0)))
			_, _, err := trainStep(t, bowl).StepBlock(t.Context(), newState(t, plugintest.CPU(t), optim.New(1, optim.ScaleBySchedule(row.schedule))), slopes(t, 1, 1))
			require.ErrorContains(t, err, strings.TrimPrefix(row.want, "optim: "))
		})
	}
}

func ExampleSchedule_Then() {
	rate := optim.Linear(0, 1, 100).Then(100, optim.Cosine(1, 0.1, 900))
	fmt.Println(rate)
	for _, step := range []int64{0, 50, 100, 550, 1000} {
		fmt.Printf("%4d %.3f\n", step, rate.At(step))
	}
	// Output:
	// linear 0 to 1 in 100 for 100, then cosine 1 to 0.1 in 900
	//    0 0.000
	//   50 0.500
	//  100 1.000
	//  550 0.550
	// 1000 0.100
}
