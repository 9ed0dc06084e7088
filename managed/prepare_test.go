package managed_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// A prepared step has its variables and its program before the first batch; the run is bit-identical.
func TestPrepare(t *testing.T) {
	r := plugintest.CPU(t)
	set := line(t, 64)
	for _, strategy := range []strategies.Strategy{strategies.Jit(r), parallel(t), strategies.Eager(r)} {
		t.Run(strategy.String(), func(t *testing.T) {
			values := func(prepare bool) map[string][]byte {
				state, err := managed.New(strategy, managed.WithOptimizer(adam()))
				require.NoError(t, err)
				defer func() { require.NoError(t, state.Close()) }()
				step := stepper(t, managed.TrainStep(everything))
				if prepare {
					zero, err := managed.ZeroBatch(data.X(nil, 16, 1), data.Y([]float32(nil), 16, 1))
					require.NoError(t, err)
					require.NoError(t, step.Prepare(t.Context(), state, zero))
					require.Len(t, step.StableHLO(), 1)
					before := bits(t, state)
					require.NotEmpty(t, before)
					require.Equal(t, make([]byte, 8), before["/samples"], "no step was made")
					require.NoError(t, step.Prepare(t.Context(), state, zero))
					require.Equal(t, before, bits(t, state))
				}
				_, err = loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, set.Batches(16), loop.Until(loop.Steps(5)))
				require.NoError(t, err)
				require.Len(t, step.StableHLO(), 1, "the first batch compiles nothing")
				return bits(t, state)
			}
			require.Equal(t, values(false), values(true))
		})
	}
}

// Build makes the variables that Prepare would, and no program; a batch of shapes alone will do.
func TestBuild(t *testing.T) {
	r := plugintest.CPU(t)
	prepared, built := newState(t, r, managed.WithOptimizer(adam())), newState(t, r, managed.WithOptimizer(adam()))
	step := stepper(t, managed.TrainStep(everything))
	batch := first(t, line(t, 16).Batches(16))
	require.NoError(t, step.Prepare(t.Context(), prepared, batch))
	compiled := len(step.StableHLO())
	inputs, err := strategies.Inputs(batch)
	require.NoError(t, err)
	require.NoError(t, step.Build(t.Context(), built, inputs))
	require.Len(t, step.StableHLO(), compiled)
	require.Equal(t, bits(t, prepared), bits(t, built))
	require.EqualError(t, step.Build(t.Context(), nil, inputs), "managed: build the train step: the state is nil: make one with New")
	require.ErrorContains(t, step.Build(t.Context(), newState(t, r, managed.WithOptimizer(adam())), inputs[:1]), "managed: build the train step: ")
}

func TestPrepare_refuses(t *testing.T) {
	r := plugintest.CPU(t)
	state := newState(t, r, managed.WithOptimizer(sgd()))
	step := stepper(t, managed.TrainStep(regression))
	batch := first(t, line(t, 16).Batches(16))
	cancelled, cancel := context.WithCancelCause(t.Context())
	cancel(errInjected)
	require.EqualError(t, step.Prepare(cancelled, state, batch), "managed: prepare the train step: injected")
	require.EqualError(t, step.Prepare(t.Context(), nil, batch), "managed: prepare the train step: the state is nil: make one with New")
	zero, err := managed.ZeroBatch(data.X(nil, 16, 1))
	require.NoError(t, err)
	require.ErrorContains(t, step.Prepare(t.Context(), state, zero), `the batch has no field "y"; it has: x`)
	require.Empty(t, state.Names())
	require.NoError(t, step.Prepare(t.Context(), state, batch))
	require.NoError(t, state.Close())
	require.ErrorIs(t, step.Prepare(t.Context(), state, batch), managed.ErrClosed)
}

func TestZeroBatch(t *testing.T) {
	for _, row := range []struct {
		name  string
		field data.Field
		want  any
		err   string
	}{
		{"float32 if nothing is said", data.X(nil, 2, 3), make([]float32, 6), ""},
		{"a dtype", data.X([]int32(nil), 2), make([]int32, 2), ""},
		{"values are not taken over", data.X([]bool{true, true}, 2), make([]bool, 2), ""},
		{"a scalar", data.X(nil), make([]float32, 1), ""},
		{"no examples", data.X(nil, 0, 3), []float32{}, ""},
		{"no slice", data.X(3, 2), nil, `managed: zero batch: field "x": int does not name a dtype, expected a slice such as []float32(nil)`},
		{"a type that no array has", data.X([]string(nil), 2), nil, `managed: zero batch: field "x": `},
		{"a negative length", data.X(nil, 2, -1), nil, `managed: zero batch: field "x": dims [2 -1]: expected at most 2147483647 numbers, and no negative length`},
		{"too many", data.X(nil, 1<<31, 1<<40), nil, `managed: zero batch: field "x": dims [2147483648 1099511627776]: expected at most`},
	} {
		t.Run(row.name, func(t *testing.T) {
			b, err := managed.ZeroBatch(row.field)
			if row.err != "" {
				require.ErrorContains(t, err, row.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.want, b.Fields[0].Array.Flat)
			require.Equal(t, row.field.Array.Dims, b.Fields[0].Array.Dims)
		})
	}
	b, err := managed.ZeroBatch(data.X(nil, 4, 2), data.Y([]int64(nil), 4))
	require.NoError(t, err)
	require.Equal(t, 4, b.Size)
	require.Equal(t, "y", b.Fields[1].Name)
}

// A nil or zero step is an error, or has nothing.
func TestStepper_none(t *testing.T) {
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)))
	require.NoError(t, err)
	defer state.Close()
	view, err := state.View(t.Context())
	require.NoError(t, err)
	defer view.Close()
	b := data.Batch{Fields: []data.Field{data.X([]float32{1}, 1)}, Size: 1}
	for _, s := range []*managed.Stepper{nil, {}} {
		for name, f := range map[string]func() error{
			"Step":            func() error { _, _, err := s.Step(t.Context(), state, b); return err },
			"StepBlock":       func() error { _, _, err := s.StepBlock(t.Context(), state, []data.Batch{b}); return err },
			"Prepare":         func() error { return s.Prepare(t.Context(), state, b) },
			"Program":         func() error { _, err := s.Program(t.Context(), state, b); return err },
			"Build":           func() error { return s.Build(t.Context(), state, nil) },
			"Export":          func() error { return s.Export(t.TempDir()+"/x", state, b, managed.ExportOptions{}) },
			"Costs":           func() error { _, err := s.Costs(); return err },
			"Memory":          func() error { _, err := s.Memory(); return err },
			"BeginEvaluation": func() error { _, err := s.BeginEvaluation(t.Context(), state); return err },
			"View.Step":       func() error { _, err := view.Step(t.Context(), s, b); return err },
			"View.StepBlock":  func() error { _, err := view.StepBlock(t.Context(), s, []data.Batch{b}); return err },
		} {
			require.ErrorContains(t, f(), "the step is nil: make one with TrainStep or TestStep", name)
		}
		require.NoError(t, s.Close())
		require.NoError(t, s.Await(t.Context(), state))
		require.Empty(t, s.Entries())
		require.Empty(t, s.StableHLO())
		require.Zero(t, s.CompileTime())
		require.Equal(t, "step", s.String())
	}
	require.ErrorContains(t, managed.ExportModel(t.TempDir()+"/x", state, b, nil, managed.ExportOptions{}), "the function that builds the model is nil")
}
