package managed_test

import (
	"errors"
	"io"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
)

// all reads the values of a state.
func all(t *testing.T, state *managed.State) map[string]*tensors.Tensor {
	t.Helper()
	values := map[string]*tensors.Tensor{}
	for _, name := range state.Names() {
		v, err := state.Value(name)
		require.NoError(t, err)
		values[name] = v
	}
	return values
}

// A state made of all values of another one continues as the other does, on each strategy, and the tensors remain the
// caller's.
func TestWithValues_goesOn(t *testing.T) {
	r, four := plugintest.CPU(t), parallel(t)
	set := line(t, 64)
	step := stepper(t, managed.TrainStep(everything))
	other := newState(t, r, managed.WithOptimizer(adam()))
	turns(t, step, other, set, 0, 3)
	given := all(t, other)
	turns(t, step, other, set, 3, 6)
	for _, strategy := range []strategies.Strategy{strategies.Jit(r), four, strategies.Eager(r)} {
		t.Run(strategy.String(), func(t *testing.T) {
			for range 2 { // also a second time
				state, err := managed.New(strategy, managed.WithOptimizer(adam()), managed.WithSeed(99), managed.WithValues(given))
				require.NoError(t, err)
				turns(t, step, state, set, 3, 6)
				requireSame(t, other, state, 1e-5)
				require.NoError(t, state.Close())
			}
		})
	}
}

// No random number is drawn for what is given: the random state is that of the seed.
func TestWithValues_drawsNothing(t *testing.T) {
	r := plugintest.CPU(t)
	given := map[string]*tensors.Tensor{"/dense/dense/weights": tensors.FromValue([][]float32{{2}}), "/dense/dense/biases": tensors.FromValue([]float32{1})}
	test := stepper(t, managed.TestStep(regression))
	random := func(options ...managed.Option) []byte {
		state := newState(t, r, options...)
		one(t, test, state, first(t, line(t, 16).Batches(16)))
		return bits(t, state)["/#rngState"]
	}
	none := newState(t, r)
	one(t, stepper(t, managed.TestStep(func(b *managed.Builder) { b.Metric("x", b.Field("x")) })), none, first(t, line(t, 16).Batches(16)))
	require.Equal(t, bits(t, none)["/#rngState"], random(managed.WithValues(given)))
	require.NotEqual(t, random(), random(managed.WithValues(given)))
}

func TestWithValues_refuse(t *testing.T) {
	r := plugintest.CPU(t)
	w, b := tensors.FromValue([][]float32{{2}}), tensors.FromValue([]float32{1})
	const weights, biases = "/dense/dense/weights", "/dense/dense/biases"
	type given = map[string]*tensors.Tensor
	for _, row := range []struct {
		name   string
		values given
		drawn  func(string) bool
		want   string // "" if they fit
	}{
		{"all", given{weights: w, biases: b}, nil, ""},
		{"more than all", given{weights: w, biases: b, "/other": b}, nil, ""},
		{"one missing", given{weights: w}, nil, "the given values do not fit the model: /dense/dense/biases (Float32)[1] is missing"},
		{"one missing, which may", given{weights: w}, func(name string) bool { return name == biases }, ""},
		{"a misspelt one", given{weights: w, "/dense/dense/bias": b}, nil,
			"the given values do not fit the model: /dense/dense/biases (Float32)[1] is missing; given, but not in the model so far: /dense/dense/bias"},
		{"another shape, another dtype", given{weights: b, biases: tensors.FromValue([]float64{1})}, nil,
			"the given values do not fit the model: /dense/dense/weights is (Float32)[1], expected (Float32)[1, 1]; /dense/dense/biases is (Float64)[1], expected (Float32)[1]"},
		{"none", given{}, nil,
			"the given values do not fit the model: /dense/dense/weights (Float32)[1, 1] is missing; /dense/dense/biases (Float32)[1] is missing"},
		{"one that is not trained", given{weights: w, biases: b, "/optimizers/learning_rate": b}, nil,
			"the given values do not fit the model: /optimizers/learning_rate is (Float32)[1], expected (Float32)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			options := []managed.Option{managed.WithOptimizer(sgd()), managed.WithValues(row.values)}
			if row.drawn != nil {
				options = append(options, managed.DrawMissing(row.drawn))
			}
			state := newState(t, r, options...)
			step := stepper(t, managed.TrainStep(regression))
			for range 2 { // it stays so
				_, _, err := step.Step(t.Context(), state, first(t, line(t, 16).Batches(16)))
				if row.want == "" {
					require.NoError(t, err)
					continue
				}
				require.EqualError(t, err, "managed: train step: "+row.want)
				require.Empty(t, state.Names())
			}
		})
	}
	for name, values := range map[string]given{
		`managed: new state: value "/w": expected a tensor and a full name such as "/dense/weights"`: {"/w": nil},
		`managed: new state: value "w": expected a tensor and a full name such as "/dense/weights"`:  {"w": w},
	} {
		_, err := managed.New(strategies.Jit(r), managed.WithValues(values))
		require.EqualError(t, err, name)
	}
}

func TestSetValue(t *testing.T) {
	r := plugintest.CPU(t)
	for _, strategy := range []strategies.Strategy{strategies.Jit(r), parallel(t), strategies.Eager(r)} {
		t.Run(strategy.String(), func(t *testing.T) {
			state, err := managed.New(strategy, managed.WithOptimizer(sgd()))
			require.NoError(t, err)
			value := tensors.FromValue(float32(3))
			require.EqualError(t, state.SetValue("/w", value), `managed: set "/w": the state has no variables before its first step: use WithValues, or Prepare the step`)
			step := stepper(t, managed.TrainStep(slope))
			one(t, step, state, ones(t, 4))
			for range 2 { // the tensor stays the caller's
				require.NoError(t, state.SetValue("/w", value))
				require.Equal(t, []float32{3}, floats(t, state, "/w"))
				one(t, step, state, ones(t, 4))
				require.InDelta(t, 2.4, floats(t, state, "/w")[0], 1e-6)
			}
			require.Len(t, step.StableHLO(), 1, "nothing was compiled again")
			before := bits(t, state)
			for want, try := range map[string]func() error{
				`managed: set "/v": there is no such variable; there are ["/#rngState" "/w" "/optimizers/learning_rate" "/global_step"]`: func() error { return state.SetValue("/v", value) },
				`managed: set "/w": the tensor is (Float32)[1], expected (Float32)`:                                                      func() error { return state.SetValue("/w", tensors.FromValue([]float32{3})) },
				`managed: set "/w": the tensor is (Float64), expected (Float32)`:                                                         func() error { return state.SetValue("/w", tensors.FromValue(3.0)) },
				`managed: set "/w": the tensor is nil`:                                                                                   func() error { return state.SetValue("/w", nil) },
			} {
				require.EqualError(t, try(), want)
			}
			require.Equal(t, before, bits(t, state))
			require.NoError(t, state.Close())
			require.ErrorIs(t, state.SetValue("/w", value), managed.ErrClosed)
		})
	}
}

// A value of another dtype than float32 is returned unchanged.
func TestWithValues_types(t *testing.T) {
	r := plugintest.CPU(t)
	want := tensors.FromValue([]int64{1 << 40, -1})
	state := newState(t, r, managed.WithValues(map[string]*tensors.Tensor{"/counts": want}))
	one(t, stepper(t, managed.TestStep(func(b *managed.Builder) {
		v := b.Scope().VariableWithValue("counts", []int64{0, 0}).SetTrainable(false)
		b.Metric("count", v.NodeValue(b.Graph()))
	})), state, ones(t, 1))
	got, err := state.Value("/counts")
	require.NoError(t, err)
	require.Equal(t, dtypes.Int64, got.DType())
	require.True(t, want.Equal(got))
}

// Values in files are read one after another, when a step creates their variables, also after a restore.
func TestWithValues_late(t *testing.T) {
	r := plugintest.CPU(t)
	reads := []string{}
	late := func(name string, numbers ...float32) checkpoint.Tensor {
		return checkpoint.Tensor{DType: safetensors.F32, Dims: []int{len(numbers) / 2, 2}, Write: func(w io.Writer) error {
			reads = append(reads, name)
			_, err := w.Write(safetensors.Bytes(numbers))
			return err
		}}
	}
	bias := func(numbers ...float32) checkpoint.Tensor {
		return checkpoint.Tensor{DType: safetensors.F32, Dims: []int{2}, Data: safetensors.Bytes(numbers)}
	}
	values := map[string]checkpoint.Tensor{"/a/kernel": late("a", 1, 2, 3, 4), "/a/bias": bias(5, 6), "/b/kernel": late("b", 7, 8, 9, 10), "/b/bias": bias(11, 12),
		"/c/kernel": late("c", 0, 0)}
	a, b := stepper(t, squared("a", 2)), stepper(t, squared("b", 2))
	state := newState(t, r, managed.WithOptimizer(optim.New(1e-30)), managed.WithValues(values))
	require.Empty(t, reads)
	one(t, a, state, pair)
	require.Equal(t, []string{"a"}, reads)
	require.Equal(t, []float32{1, 2, 3, 4}, floats(t, state, "/a/kernel"))
	require.Equal(t, []float32{5, 6}, floats(t, state, "/a/bias"))
	clone, err := state.Clone(t.Context(), state.Strategy())
	require.NoError(t, err)
	defer func() { require.NoError(t, clone.Close()) }()
	saved := reread(t, state)
	state = newState(t, r, managed.WithOptimizer(optim.New(1e-30)), managed.WithValues(values))
	require.NoError(t, state.Restore(t.Context(), saved))
	require.Equal(t, []string{"a"}, reads)
	for i, state := range []*managed.State{state, clone} {
		one(t, b, state, pair)
		require.Equal(t, []string{"a", "b", "b"}[:2+i], reads)
		require.Equal(t, []float32{7, 8, 9, 10}, floats(t, state, "/b/kernel"))
	}

	values["/a/kernel"] = checkpoint.Tensor{DType: safetensors.F32, Dims: []int{2, 2}, Write: func(w io.Writer) error { return errors.New("the disk is gone") }}
	state = newState(t, r, managed.WithOptimizer(optim.New(1e-30)), managed.WithValues(values))
	for range 2 {
		_, _, err = a.Step(t.Context(), state, pair)
		require.ErrorContains(t, err, "/a/kernel: the disk is gone")
		require.Empty(t, state.Names())
	}
	values["/a/kernel"] = checkpoint.Tensor{DType: safetensors.F32, Dims: []int{2, 2}, Data: []byte{1}}
	_, err = managed.New(strategies.Jit(r), managed.WithValues(values))
	require.EqualError(t, err, `managed: new state: value "/a/kernel": 1 bytes for (Float32)[2, 2], expected 16`)
	values["/a/kernel"] = checkpoint.Tensor{}
	_, err = managed.New(strategies.Jit(r), managed.WithValues(values))
	require.ErrorContains(t, err, `value "/a/kernel": values of dtype`)
}
