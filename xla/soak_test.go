package xla_test

import (
	"fmt"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// soakRuns is the number of runs in each row; the nightly form makes 25 times as many.
var soakRuns = 40_000

// maxGrowth limits the growth of resident memory between the first tenth of a soak and its end.
const maxGrowth = 8 << 20

// footprint has the resources of a process that could leak.
type footprint struct {
	pjrt.Counts
	goroutines int
	resident   int64 // bytes; 0 if unknown
	heap       int64 // bytes of Go's memory; the C library's is the rest of resident
}

func takeFootprint(t *testing.T) footprint {
	t.Helper()
	debug.FreeOSMemory() // the first collection runs finalizers, the second frees their garbage
	debug.FreeOSMemory()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	f := footprint{Counts: pjrt.Live(), goroutines: goruntime.NumGoroutine(), heap: int64(m.HeapAlloc)}
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		var size, pages int64
		_, err := fmt.Sscan(string(text), &size, &pages)
		require.NoError(t, err)
		f.resident = pages * int64(os.Getpagesize())
	}
	return f
}

// accumulating compiles a + x in place of a, with the sum of both as another output, as a program or a block.
func accumulating(t *testing.T, r *xla.Runtime, block int) *xla.Program {
	t.Helper()
	p, err := r.Compile("accumulate", func(g *graph.Graph) xla.Built {
		shape := shapes.Make(dtypes.Float32, 3)
		a, x := graph.Parameter(g, "a", shape), graph.Parameter(g, "x", shape)
		sum := graph.Add(a, x)
		return xla.Built{Outputs: []*graph.Node{sum, graph.ReduceAllSum(sum)}, InPlace: map[int]int{0: 0}, Host: []int{1}, Block: block}
	})
	require.NoError(t, err)
	return p
}

// Many runs of programs, blocks and GoMLX's own graphs, some of which fail, leak nothing: no PJRT objects, C memory,
// goroutines or uncounted memory.
func TestF18_soak(t *testing.T) {
	runs := soakRuns
	if testing.Short() { // the race detector's own memory distorts the result
		runs = 2_000
	}
	for _, row := range []struct {
		name string
		// prepare returns a function that makes runs, and one that closes everything.
		prepare   func(t *testing.T, r *xla.Runtime) (run func(runs int), closeAll func() error)
		collected bool // some memory waits for the garbage collector
	}{
		{"program", func(t *testing.T, r *xla.Runtime) (func(int), func() error) { return programs(t, r, 1) }, false},
		{"blocks of 10, started", func(t *testing.T, r *xla.Runtime) (func(int), func() error) { return programs(t, r, 10) }, false},
		{"graph.Exec, shapes", execs, true},
		{"buffers", buffers, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := plugintest.Uncached(t, xla.KeepPrograms(0))
			before := takeFootprint(t)
			run, closeAll := row.prepare(t, r)
			run(runs / 10) // everything is compiled; pools and caches are full
			warm := takeFootprint(t)
			run(runs)
			hot := takeFootprint(t)
			if hot.resident-warm.resident >= maxGrowth { // a leak grows again; a late one-time allocation of the plugin's threads does not
				warm = hot
				run(runs)
				hot = takeFootprint(t)
			}
			require.NoError(t, closeAll())
			after := takeFootprint(t)
			require.LessOrEqual(t, after.goroutines, before.goroutines)
			if row.collected {
				before.Collected = after.Collected
			}
			require.Equal(t, before.Counts, after.Counts)
			if !testing.Short() {
				require.Less(t, hot.resident-warm.resident, int64(maxGrowth))
			}
			t.Logf("F18: %d runs, %s: resident %+d KiB, of it Go's heap %+d KiB; 0 objects, C allocations and goroutines left",
				runs, row.name, (hot.resident-warm.resident)>>10, (hot.heap-warm.heap)>>10)
		})
	}
}

// programs runs a program, or starts each block before the previous one ends.
func programs(t *testing.T, r *xla.Runtime, block int) (run func(int), closeAll func() error) {
	p := accumulating(t, r, block)
	state, err := r.BufferFromFlatData(0, []float32{1, 2, 3}, shapes.Make(dtypes.Float32, 3))
	require.NoError(t, err)
	inputs, hosts := []compute.Buffer{state, nil}, [2][]any{{make([]float32, 3*block)}, {make([]float32, 3*block)}}
	free := func(outputs []compute.Buffer) {
		for _, o := range outputs {
			require.NoError(t, o.Finalize())
		}
	}
	return func(runs int) {
			var last *xla.Running
			var outputs []compute.Buffer
			finish := func() {
				require.NoError(t, last.Wait())
				free(outputs)
			}
			for i := range runs {
				next, running, err := p.Start(inputs, hosts[i%2], block)
				require.NoError(t, err)
				finish()
				last, outputs = running, next
				if i%100 == 0 {
					_, err := p.Run(inputs, []any{make([]float32, 1)})
					require.Error(t, err)
					_, err = p.Run(inputs, nil)
					require.Error(t, err)
					got, err := p.Run(inputs, hosts[1-i%2])
					require.NoError(t, err)
					free(got)
				}
			}
			finish()
		}, func() error {
			if err := state.Finalize(); err != nil {
				return err
			}
			return p.Close()
		}
}

// mostWaiting limits the buffers that wait for the collector. Each has 4.5 KB of C memory, whose peak glibc keeps: with
// a late collector, thousands of them made this row grow by 9 MB, and 10,000 make it 45 MB (GOGC=off). 1,500,000 runs
// with few waiting made 1 MB.
const mostWaiting = 200

// execs runs a graph for inputs of three shapes. Few tensors wait for the collector at a time.
func execs(t *testing.T, r *xla.Runtime) (run func(int), closeAll func() error) {
	e, err := graph.NewExec(r, func(x *graph.Node) *graph.Node {
		return graph.Add(graph.ReduceAllSum(x), graph.Scalar(x.Graph(), x.DType(), 1))
	})
	require.NoError(t, err)
	return func(runs int) {
			for i := range runs {
				x := tensors.FromScalarAndDimensions(float32(1), 1+i%3)
				got, err := e.Call(x)
				require.NoError(t, err)
				require.Equal(t, float32(2+i%3), tensors.ToScalar[float32](got[0]))
				if i%20 > 0 {
					require.NoError(t, got[0].FinalizeAll())
					require.NoError(t, x.FinalizeAll())
				}
				if i%100 == 0 {
					_, err := e.Call(x, x)
					require.Error(t, err)
					for tries := 0; pjrt.Live().Buffers > mostWaiting; tries++ {
						require.Less(t, tries, 10_000, "the collector frees nothing")
						goruntime.GC()
					}
				}
			}
		}, func() error {
			e.Finalize()
			return nil
		}
}

// buffers sends arrays to the device, copies them and fetches them.
func buffers(t *testing.T, r *xla.Runtime) (run func(int), closeAll func() error) {
	shape, x, got := shapes.Make(dtypes.Int32, 2, 50), make([]int32, 100), make([]int32, 100)
	return func(runs int) {
		for i := range runs {
			b, err := r.BufferFromFlatData(0, x, shape)
			require.NoError(t, err)
			require.NoError(t, b.ToFlatData(got))
			require.NoError(t, b.Finalize())
			if i%100 == 0 {
				_, err := r.BufferFromFlatData(0, x[1:], shape)
				require.Error(t, err)
				require.Error(t, b.ToFlatData(got))
			}
		}
	}, func() error { return nil }
}
