package strategies_test

import (
	"runtime"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

func jit(t *testing.T) strategies.Strategy {
	t.Helper()
	r := plugintest.CPU(t)
	s, err := strategies.Parse("jit", r)
	require.NoError(t, err)
	return s
}

// accumulate adds the batch to the first of two values of state; the output is their sum.
func accumulate(t *testing.T, s strategies.Strategy) strategies.Program {
	t.Helper()
	shape := shapes.Make(dtypes.Float32, 2)
	p, err := s.Compile(strategies.Step{
		Name:  "accumulate",
		Batch: []strategies.Input{{Name: "x", Shape: shape}},
		Build: func(g *graph.Graph, batch []*graph.Node) strategies.Built {
			a, b := graph.Parameter(g, "a", shape), graph.Parameter(g, "b", shape)
			sum := graph.Add(a, batch[0])
			return strategies.Built{
				State:   []strategies.Slot{{Parameter: a, New: sum}, {Parameter: b}},
				Outputs: []*graph.Node{graph.Add(sum, b)},
			}
		}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func put(t *testing.T, s strategies.Strategy, v ...float32) compute.Buffer {
	t.Helper()
	b, err := s.Put("v", tensors.FromValue(v))
	require.NoError(t, err)
	return b
}

func fetch(t *testing.T, s strategies.Strategy, b compute.Buffer) []float32 {
	t.Helper()
	v, err := s.Fetch(b)
	require.NoError(t, err)
	flat, err := tensors.CopyFlatData[float32](v)
	require.NoError(t, err)
	return flat
}

// run makes one step and waits for it.
func run(p strategies.Program, state []compute.Buffer, batch ...data.Array) (changed, outputs []compute.Buffer, err error) {
	var fields data.Batch
	for _, a := range batch {
		fields.Fields = append(fields.Fields, data.Field{Array: a})
	}
	changed, outputs, running, err := p.Start(state, []data.Batch{fields})
	if err == nil && running != nil {
		err = running.Wait()
	}
	return changed, outputs, err
}

func TestJit_runs(t *testing.T) {
	s := jit(t)
	p := accumulate(t, s)
	state := []compute.Buffer{put(t, s, 1, 2), put(t, s, 10, 20)}
	for step := range 3 {
		changed, outputs, err := run(p, state, data.Array{Flat: []float32{100, 200}, Dims: []int{2}})
		require.NoError(t, err)
		require.Nil(t, changed[1], "the step leaves it alone")
		n := float32(step + 1)
		require.Equal(t, []float32{1 + 100*n, 2 + 200*n}, fetch(t, s, changed[0]))
		require.Equal(t, []float32{11 + 100*n, 22 + 200*n}, fetch(t, s, outputs[0]))
		require.Equal(t, []float32{10, 20}, fetch(t, s, state[1]))
		require.NoError(t, s.Free(outputs...))
		state[0] = changed[0]
	}
	require.NoError(t, s.Free(state...))
	require.Positive(t, p.CompileTime())
}

// From its second run on, a program writes the new state over the old one: no second copy, no new memory.
func TestJit_stateIsInPlace(t *testing.T) {
	s := jit(t)
	p := accumulate(t, s)
	address := func(b compute.Buffer) *byte {
		view, err := b.(interface{ View() (*pjrt.View, error) }).View()
		require.NoError(t, err)
		defer func() { require.NoError(t, view.Close()) }()
		return &view.Data[0]
	}
	state := []compute.Buffer{put(t, s, 1, 2), put(t, s, 10, 20)}
	var at *byte
	for step := range 5 {
		changed, outputs, err := run(p, state, data.Array{Flat: []float32{100, 200}, Dims: []int{2}})
		require.NoError(t, err)
		require.NoError(t, s.Free(outputs...))
		if step > 0 {
			require.Same(t, at, address(changed[0]))
		}
		state[0], at = changed[0], address(changed[0])
	}
	require.NoError(t, s.Free(state...))
}

// A first run that fails leaves the state unchanged, however often it is tried (G04, F17).
func TestJit_firstRunKeepsTheState(t *testing.T) {
	s := jit(t)
	shape := shapes.Make(dtypes.Float32, 2)
	p, err := s.Compile(strategies.Step{Name: "greedy", Build: func(g *graph.Graph, _ []*graph.Node) strategies.Built {
		a := graph.Parameter(g, "a", shape)
		column := graph.BroadcastToDims(graph.ReduceAllMax(a), 1<<21, 1)
		square := graph.Dot(column, graph.Reshape(column, 1, 1<<21)).Product() // 16 TiB
		return strategies.Built{State: []strategies.Slot{{Parameter: a, New: graph.Add(a, graph.ReduceAllMax(graph.Dot(square, column).Product()))}}}
	}})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	state := []compute.Buffer{put(t, s, 1, 2)}
	for range 5 {
		_, _, err = run(p, state)
		require.ErrorIs(t, err, xla.ErrOutOfMemory)
		require.NotErrorIs(t, err, strategies.ErrStateLost)
		require.Equal(t, []float32{1, 2}, fetch(t, s, state[0]))
	}
	require.NoError(t, s.Free(state...))
}

func TestJit_mistakes(t *testing.T) {
	s := jit(t)
	p := accumulate(t, s)
	_, _, err := run(p, nil)
	require.EqualError(t, err, "strategies: jit: run accumulate: expected 2 values of state and 1 fields of a batch, got 0 and 0")
	state := []compute.Buffer{put(t, s, 1, 2), put(t, s, 10, 20)}
	_, _, err = run(p, state, data.Array{Flat: []int32{1, 2}, Dims: []int{2}})
	require.EqualError(t, err, "strategies: jit: run accumulate: x of the batch: expected (Float32)[2], got []int32 of dimensions [2]")
	require.Equal(t, []float32{1, 2}, fetch(t, s, state[0]))
	require.NoError(t, s.Free(state...))
	_, err = s.Fetch(nil)
	require.EqualError(t, err, "strategies: jit: fetch: there is no value (nil)")
}

// Fetched values are copies: steps that overwrite the value in place leave them unchanged, and they can be put back
// while the original exists.
func TestJit_fetchedValuesStay(t *testing.T) {
	s := jit(t)
	p := accumulate(t, s)
	state := []compute.Buffer{put(t, s, 1, 2), put(t, s, 10, 20)}
	step := func() {
		changed, outputs, err := run(p, state, data.Array{Flat: []float32{100, 200}, Dims: []int{2}})
		require.NoError(t, err)
		require.NoError(t, s.Free(outputs...))
		state[0] = changed[0]
	}
	step()
	kept, err := s.Fetch(state[0])
	require.NoError(t, err)
	for range 3 {
		step()
	}
	back, err := kept.LocalClone()
	require.NoError(t, err)
	b, err := s.Put("v", back)
	require.NoError(t, err)
	require.Equal(t, []float32{101, 202}, fetch(t, s, b))
	require.Equal(t, []float32{401, 802}, fetch(t, s, state[0]))
	require.NoError(t, s.Free(state[0]))
	state[0] = b
	step()
	require.Equal(t, []float32{201, 402}, fetch(t, s, state[0]))
	flat, err := tensors.CopyFlatData[float32](kept)
	require.NoError(t, err)
	require.Equal(t, []float32{101, 202}, flat)
	require.NoError(t, s.Free(state...))
}

// The host's memory of a run is used again: of many runs it is that of one.
func TestStart_usesItsMemoryAgain(t *testing.T) {
	s, shape := jit(t), shapes.Make(dtypes.Float32)
	const n, block, runs = 1 << 12, 50, 40
	p, err := s.Compile(strategies.Step{
		Name: "sums", Block: block,
		Batch: []strategies.Input{{Name: "x", Shape: shapes.Make(dtypes.Float32, n)}},
		Build: func(g *graph.Graph, batch []*graph.Node) strategies.Built {
			a := graph.Parameter(g, "a", shape)
			return strategies.Built{State: []strategies.Slot{{Parameter: a, New: graph.Add(a, graph.ReduceAllSum(batch[0]))}}}
		}})
	require.NoError(t, err)
	a, err := s.Put("a", tensors.FromValue(float32(0)))
	require.NoError(t, err)
	state, batches := []compute.Buffer{a}, make([]data.Batch, block)
	for i := range batches {
		batches[i].Fields = []data.Field{data.X(make([]float32, n), n)}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		changed, _, running, err := p.Start(state, batches)
		require.NoError(t, err)
		if running != nil {
			require.NoError(t, running.Wait())
		}
		state = changed
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(runs/4*block*n*4), "a quarter of what all blocks take")
	require.NoError(t, s.Free(state...))
	require.NoError(t, p.Close())
}
