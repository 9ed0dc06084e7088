package managed_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

func weighed(b *managed.Builder) {
	x := graph.ConvertDType(b.Field("x"), b.Field("y").DType())
	x = layers.DropoutStatic(b.Scope(), x, 0.1)
	b.Loss("loss", graph.Square(graph.Sub(layers.Dense(b.Scope().In("dense"), x, true, 1), b.Field("y"))))
}

// pixels are examples of whole numbers with a few of them masked.
func pixels(t *testing.T, n int) *data.Set {
	x, y, mask := make([]uint8, n*6), make([]float32, n), make([]bool, n)
	for i := range x {
		x[i] = uint8(i * 37 % 11)
	}
	for i := range y {
		y[i], mask[i] = float32(i%7), i%5 != 0
	}
	set, err := data.New(data.X(x, n, 6), data.Y(y, n, 1), data.Named(data.Mask, mask, n))
	require.NoError(t, err)
	return set
}

// A set on the device gives a run the same bits as one on the host, and only the places of examples travel: under each
// strategy, in blocks and one by one, with padding and without.
func TestOnDevice(t *testing.T) {
	r, four := plugintest.CPU(t), plugintest.Devices(t, 4)
	parallel, err := strategies.DataParallel(four, strategies.Parallel{Pad: true})
	require.NoError(t, err)
	rows := []struct {
		name     string
		strategy strategies.Strategy
		steps    int
		one      bool // by one
	}{
		{"jit", strategies.Jit(r), 130, false},
		{"jit, one by one", strategies.Jit(r), 12, true},
		{"data parallel, padded", parallel, 40, false},
		{"eager", strategies.Eager(r), 3, true},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			set := pixels(t, 90)
			options := []data.Option{data.Shuffle(4)}
			var want map[string][]byte
			var losses [2][]float64
			for i, batches := range []loop.Source[data.Batch]{set.Batches(10, options...), data.OnDevice(set).Batches(10, options...)} {
				state, err := managed.New(row.strategy, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())), managed.WithSeed(3))
				require.NoError(t, err)
				step := managed.TrainStep(weighed)
				task := loop.On(loop.EachStep, step)
				if row.one {
					task = loop.On(loop.EachStep, loop.StepFunc(step.Step))
				}
				result, err := loop.New(task).Run(t.Context(), state, batches, loop.Until(loop.Steps(row.steps)))
				require.NoError(t, err)
				_, losses[i], err = result.History.Series("loss")
				require.NoError(t, err)
				if i == 0 {
					want = bits(t, state)
				} else {
					require.Equal(t, want, bits(t, state))
				}
				require.NoError(t, step.Close())
				require.NoError(t, state.Close())
			}
			require.Equal(t, losses[0], losses[1])
		})
	}
}

// hostInputs are the types of a program's parameters that are not in place and not of a set.
func hostInputs(program string) []string {
	main := regexp.MustCompile(`(?s)@main\((.*?)\) ->`).FindStringSubmatch(program)[1]
	var types []string
	for _, m := range regexp.MustCompile(`%p\d+: (tensor<[^>]*>)( \{[^}]*aliasing[^}]*\})?`).FindAllStringSubmatch(main, -1) {
		if m[2] == "" {
			types = append(types, m[1])
		}
	}
	slices.Sort(types)
	return types
}

// Of a set of 90 examples of 6 bytes, a block of steps is sent 4 bytes an example.
func TestOnDevice_onlyPlacesTravel(t *testing.T) {
	set, err := data.New(data.X(make([]uint8, 90*6), 90, 6), data.Y(make([]float32, 90), 90, 1))
	require.NoError(t, err)
	state := newState(t, plugintest.CPU(t), managed.WithOptimizer(sgd()))
	step := stepper(t, managed.TrainStep(weighed))
	_, err = loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, data.OnDevice(set).Batches(10, data.Shuffle(1)), loop.Until(loop.Steps(20)))
	require.NoError(t, err)
	require.Len(t, step.StableHLO(), 1)
	// The set itself and the learning rate stay; the places of the examples of 100 steps travel, and how many are to be
	// made.
	require.Equal(t, []string{"tensor<100x10xi32>", "tensor<90x1xf32>", "tensor<90x6xui8>", "tensor<f32>", "tensor<i32>"}, hostInputs(step.StableHLO()[0]))
}

// A place that no example of the set has is an error of its step, wherever in a block it comes; a device would take the
// nearest.
func TestOnDevice_placesOutsideTheSet(t *testing.T) {
	const bad = 5
	r, two := plugintest.CPU(t), plugintest.Devices(t, 2)
	parallel, err := strategies.DataParallel(two, strategies.Parallel{})
	require.NoError(t, err)
	for _, strategy := range []strategies.Strategy{strategies.Jit(r), parallel, strategies.Eager(r)} {
		for _, place := range []int32{-1, 90} {
			n := 0
			source := data.Map(data.OnDevice(pixels(t, 90)).Batches(10).From(0), func(b data.Batch) (data.Batch, error) {
				if n++; n == bad {
					places := slices.Clone(b.Fields[0].Array.Flat.([]int32))
					places[3] = place
					b.Fields = slices.Clone(b.Fields)
					b.Fields[0] = data.Named(data.Rows, places, len(places))
				}
				return b, nil
			})
			state, err := managed.New(strategy, managed.WithOptimizer(sgd()))
			require.NoError(t, err)
			step := stepper(t, managed.TrainStep(weighed))
			result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, loop.Data[data.Batch](source), loop.Until(loop.Steps(8)))
			require.ErrorContains(t, err, fmt.Sprintf(`step %d: `, bad))
			require.ErrorContains(t, err, fmt.Sprintf(`field "rows": example 3 is %d of a set of 90: expected 0 to 89`, place))
			require.EqualValues(t, bad-1, result.Elapsed.Steps)
			require.NoError(t, errors.Join(step.Close(), state.Close()))
		}
	}
}

// Two sets on one state, and a state that moves: each set is moved to where the steps run, and freed with the state.
func TestOnDevice_severalSetsAndAMove(t *testing.T) {
	r := plugintest.CPU(t)
	train, test := data.OnDevice(pixels(t, 40)), data.OnDevice(pixels(t, 20))
	state := newState(t, r, managed.WithOptimizer(sgd()))
	step, look := stepper(t, managed.TrainStep(weighed)), stepper(t, managed.TestStep(weighed))
	var seen []float64
	for range 2 {
		_, _, err := step.Step(t.Context(), state, first(t, train.Batches(10)))
		require.NoError(t, err)
		_, logs, err := look.Step(t.Context(), state, first(t, test.Batches(10)))
		require.NoError(t, err)
		_, host, err := look.Step(t.Context(), state, first(t, pixels(t, 20).Batches(10)))
		require.NoError(t, err)
		a, err := logs.Float("loss")
		require.NoError(t, err)
		b, err := host.Float("loss")
		require.NoError(t, err)
		require.Equal(t, b, a)
		seen = append(seen, a)
		require.NoError(t, state.MoveTo(t.Context(), strategies.Eager(r)))
	}
	require.NotEqual(t, seen[0], seen[1])
}
