package xla_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/aot"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

var four = shapes.Make(dtypes.Float32, 4)

// increment adds 1 to a value in place, and returns its sum with a batch.
func increment(t *testing.T, r *xla.Runtime) *xla.Program {
	t.Helper()
	p, err := r.Compile("increment", func(g *graph.Graph) xla.Built {
		x, y := graph.Parameter(g, "x", four), graph.Parameter(g, "y", four)
		return xla.Built{Outputs: []*graph.Node{graph.AddScalar(x, 1), graph.ReduceAllSum(graph.Add(x, y))}, InPlace: map[int]int{0: 0}, Host: []int{1}}
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// A described machine compiles once, when a program is inspected, and returns values of the right shapes.
func TestOpenTopology(t *testing.T) {
	before := pjrt.Live()
	r := plugintest.Described(t, 4)
	require.Equal(t, "fake:4", r.Topology())
	require.Equal(t, 4, r.NumDevices())
	require.Equal(t, "FAKE", r.Devices()[3])
	require.Equal(t, "1", r.PlatformVersion())
	about, err := r.DeviceAttributes(3)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"cores": int64(7)}, about)
	_, err = r.DeviceAttributes(4)
	require.ErrorContains(t, err, "fake:4 has 4")

	p := increment(t, r)
	require.Zero(t, p.CompileTime(), "nobody asked yet")
	m, err := p.Memory()
	require.NoError(t, err)
	require.EqualValues(t, len(p.StableHLO()), m.Code)
	took := p.CompileTime()
	require.Positive(t, took)
	cost, err := p.Cost()
	require.NoError(t, err, "the plugin reckons none, and lazo counts")
	require.Equal(t, xla.Cost{FLOPs: float64(m.Code), BytesAccessed: 2 * float64(m.Code), Counted: true}, cost)
	text, err := p.Optimized()
	require.NoError(t, err)
	require.Contains(t, text, "HloModule fake")
	inputs, outputs, err := p.Signature()
	require.NoError(t, err)
	require.Equal(t, []shapes.Shape{four, four}, inputs)
	require.Len(t, outputs, 2)
	require.True(t, outputs[0].Equal(four) && outputs[1].IsScalar(), "%v", outputs)

	x, err := r.BufferFromFlatData(0, []float32{1, 2, 3, 4}, four)
	require.NoError(t, err)
	state := []compute.Buffer{x, nil}
	made, running, err := p.Start(state, []any{[]float32{1, 2, 3, 4}}, 1)
	require.NoError(t, err)
	require.NoError(t, running.Wait())
	require.Same(t, x, state[0], "what is replaced stays the same value")
	require.Len(t, made, 1)
	shape, err := made[0].Shape()
	require.NoError(t, err)
	require.True(t, shape.IsScalar())
	require.Equal(t, took, p.CompileTime(), "it was compiled once")

	memory := make([]byte, 16)
	for name, read := range map[string]func() error{
		"flat":   func() error { return x.ToFlatData(make([]float32, 4)) },
		"memory": func() error { return xla.ToHost(x, memory) },
		"eager":  func() error { _, err := xla.NewEager(r); return err },
		"tensor": func() error {
			moved, err := tensors.FromBuffer(made[0])
			require.NoError(t, err)
			return moved.ToLocal()
		},
	} {
		err := read()
		require.ErrorIs(t, err, xla.ErrNotRun, name)
		require.ErrorContains(t, err, "fake:4", name)
	}
	for name, run := range map[string]func() error{
		"shape": func() error {
			_, err := p.Run([]compute.Buffer{made[0], nil}, []any{[]float32{1, 2, 3, 4}})
			return err
		},
		"foreign": func() error { _, err := p.Run([]compute.Buffer{nil, nil}, []any{[]float32{1, 2, 3, 4}}); return err },
		"inputs":  func() error { _, err := p.Run(nil, []any{[]float32{1, 2, 3, 4}}); return err },
		"host":    func() error { _, err := p.Run(state, []any{[]float32{1}}); return err },
	} {
		err := run()
		require.Error(t, err, name)
		t.Log(err)
	}
	require.Equal(t, before, pjrt.Live(), "the plugin is loaded in child processes alone")
}

// A program over several devices takes and returns each device's part.
func TestOpenTopology_mesh(t *testing.T) {
	r := plugintest.Described(t, 4)
	place := xla.Placement{Mesh: xla.Mesh{Axes: []xla.MeshAxis{{Name: "data", Size: 4}}}, Split: func(string, shapes.Shape) xla.Split { return xla.Split{{"data"}} }}
	p, err := r.CompileOver(place, "sum", func(g *graph.Graph) xla.Built {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 8, 2))
		return xla.Built{Outputs: []*graph.Node{graph.ReduceAllSum(x), graph.Neg(x)}, InPlace: map[int]int{1: 0}}
	})
	require.NoError(t, err)
	require.Equal(t, 4, p.Placement().Mesh.Devices())
	var inputs []compute.Buffer
	for d := range 4 {
		b, err := r.Abstract(compute.DeviceNum(d), shapes.Make(dtypes.Float32, 2, 2))
		require.NoError(t, err)
		inputs = append(inputs, b)
	}
	made, err := p.Run(inputs, nil)
	require.NoError(t, err)
	require.Len(t, made, 4)
	n, err := made[3].DeviceNum()
	require.NoError(t, err)
	require.EqualValues(t, 3, n)
	inputs[0], inputs[1] = inputs[1], inputs[0]
	_, err = p.Run(inputs, nil)
	require.ErrorContains(t, err, "expected a value on device 0, got one on 1")
	require.NoError(t, p.Close())
	_, err = p.Memory()
	require.ErrorIs(t, err, xla.ErrClosed)
}

// A compiler that fails or hangs is an error.
func TestOpenTopology_compilerFails(t *testing.T) {
	r := plugintest.Described(t, 1, xla.CompileTimeout(2*time.Second))
	t.Setenv("TMPDIR", t.TempDir())
	_, err := r.CompileStableHLO(t.Context(), "bad", "crash", xla.Built{})
	require.ErrorIs(t, err, aot.ErrCrash)
	require.ErrorContains(t, err, "it died of SIGABRT: fake.cc:1] the fake ends here")
	t.Log(err)
	_, err = r.CompileStableHLO(t.Context(), "bad", "nonsense", xla.Built{})
	require.ErrorIs(t, err, xla.ErrInvalidArgument)
	require.ErrorContains(t, err, "not a program of the fake")
	t.Log(err)
	_, err = r.CompileStableHLO(t.Context(), "slow", "hang", xla.Built{})
	require.ErrorIs(t, err, xla.ErrDeadline)
	require.ErrorContains(t, err, "no end after 2s")
	require.ErrorContains(t, err, "CompileTimeout")
	t.Log(err)
	p, err := r.CompileStableHLO(t.Context(), "text", "fake 3 2 1 4", xla.Built{})
	require.NoError(t, err)
	inputs, outputs, err := p.Signature()
	require.NoError(t, err)
	require.Equal(t, []shapes.Shape{four, four, four}, inputs)
	require.Equal(t, []shapes.Shape{four, four}, outputs)
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left, "what compilers left")
}

// Close ends compilations in progress.
func TestOpenTopology_close(t *testing.T) {
	library := plugintest.Fake(t)
	t.Setenv("TMPDIR", t.TempDir())
	r, err := xla.OpenTopology(t.Context(), library, "fake:1")
	require.NoError(t, err)
	p := increment(t, r)
	done := make(chan error)
	go func() {
		_, err := r.CompileStableHLO(t.Context(), "slow", "hang", xla.Built{})
		done <- err
	}()
	require.Eventually(t, func() bool { // the folder of its child
		folders, err := os.ReadDir(os.TempDir())
		return err == nil && len(folders) > 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, r.Close())
	require.ErrorIs(t, <-done, xla.ErrClosed)
	_, err = p.Memory()
	require.ErrorIs(t, err, xla.ErrClosed)
	_, err = r.BufferFromFlatData(0, []float32{1, 2, 3, 4}, four)
	require.ErrorIs(t, err, xla.ErrClosed)
	require.Zero(t, r.NumDevices())
}

// The context of CompileStableHLO ends the compiler, and nothing is compiled for one that has ended.
func TestCompileStableHLO_context(t *testing.T) {
	r := plugintest.Described(t, 1, xla.CompileTimeout(20*time.Second))
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	done := make(chan error)
	go func() {
		_, err := r.CompileStableHLO(ctx, "slow", "hang", xla.Built{})
		done <- err
	}()
	require.Eventually(t, func() bool { // the folder of its child
		folders, err := os.ReadDir(os.TempDir())
		return err == nil && len(folders) > 0
	}, time.Minute, time.Millisecond)
	cancel(cause)
	require.ErrorIs(t, <-done, cause)
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left, "what the compiler left")
	for _, on := range []*xla.Runtime{r, plugintest.CPU(t)} {
		_, err := on.CompileStableHLO(ctx, "text", "fake 3 2 1 4", xla.Built{})
		require.ErrorIs(t, err, cause)
		require.ErrorContains(t, err, "xla: compile text: enough")
	}
}

// The context of Prepare ends the compiler; the next call compiles again.
func TestProgram_Prepare(t *testing.T) {
	r := plugintest.Described(t, 1)
	t.Setenv("TMPDIR", t.TempDir())
	p := increment(t, r)
	cancelled, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	require.ErrorIs(t, p.Prepare(cancelled), cause)
	require.Zero(t, p.CompileTime())
	require.NoError(t, p.Prepare(t.Context()))
	require.NoError(t, p.Prepare(t.Context()))
	_, err := p.Memory()
	require.NoError(t, err)

	slow := xla.DescribedText(r, "hang")
	waits, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	for range 2 { // one has the compiler, one waits
		go func() { done <- slow.Prepare(waits) }()
	}
	require.Eventually(t, func() bool { // the folder of its child
		folders, err := os.ReadDir(os.TempDir())
		return err == nil && len(folders) > 0
	}, time.Minute, time.Millisecond)
	cancel(cause)
	for range 2 {
		require.ErrorIs(t, <-done, cause)
	}
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left, "what the compiler left")
	require.NoError(t, p.Close())
	require.ErrorIs(t, p.Prepare(t.Context()), xla.ErrClosed)

	of, err := plugintest.CPU(t).CompileStableHLO(t.Context(), "there", `func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }`, xla.Built{})
	require.NoError(t, err)
	require.NoError(t, of.Prepare(t.Context()))
	require.NoError(t, of.Close())
}

// Reports are kept in the folder of the compile cache.
func TestOpenTopology_cache(t *testing.T) {
	dir, library := t.TempDir(), plugintest.Fake(t)
	var first time.Duration
	for round, name := range []string{"fake:2", "fake:2", "fake:3"} {
		r, err := xla.OpenTopology(t.Context(), library, name, xla.CompileCache(dir, 0))
		require.NoError(t, err)
		p := increment(t, r)
		text, err := p.Optimized()
		require.NoError(t, err)
		require.Contains(t, text, "HloModule fake")
		require.Equal(t, map[int]int{0: 0, 1: 1, 2: 0}[round], xla.DescribedCacheHits(r))
		if round == 0 {
			first = p.CompileTime()
		} else if round == 1 {
			require.Equal(t, first, p.CompileTime(), "what the compiler took")
		}
		require.NoError(t, r.Close())
	}
}

func TestOpenTopology_refusals(t *testing.T) {
	library := plugintest.Fake(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		name, plugin, topology string
		options                []xla.Option
		is                     error
		text                   string
	}{
		{"topology", library, "nowhere", nil, xla.ErrInvalidArgument, `xla: open the topology "nowhere" of`},
		{"crash", library, "crash", nil, aot.ErrCrash, "SIGABRT"},
		{"hang", library, "hang", []xla.Option{xla.CompileTimeout(time.Second)}, xla.ErrDeadline, "no end after 1s"},
		{"cpu", xla.CPU, "x", nil, xla.ErrUnimplemented, "describes no machine"},
		{"go", xla.Go, "x", nil, xla.ErrUnimplemented, "describes no machine"},
		{"no plugin", xla.TPU, "v5e:2x2", []xla.Option{xla.Root(t.TempDir())}, xla.ErrPluginNotFound, "lazo install tpu"},
		{"no CUDA", xla.CUDA, "h100:1x1x1", []xla.Option{xla.Root(t.TempDir())}, xla.ErrPluginNotFound, "lazo install cuda_compile"},
		{"limit", library, "fake", []xla.Option{xla.CompileTimeout(0)}, nil, "expected more than 0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := xla.OpenTopology(t.Context(), row.plugin, row.topology, row.options...)
			require.Error(t, err)
			t.Log(err)
			if row.is != nil {
				require.ErrorIs(t, err, row.is)
			}
			require.ErrorContains(t, err, row.text)
		})
	}
	_, err := xla.OpenTopology(cancelled, library, "fake")
	require.ErrorIs(t, err, context.Canceled)
	r := plugintest.Go(t)
	_, err = r.Abstract(0, four)
	require.ErrorIs(t, err, xla.ErrUnimplemented)
	require.Empty(t, r.Topology())
}
