package managed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/xla"
)

// soakSteps is the number of steps of each row; the nightly form makes ten times as many.
var soakSteps = 100_000

// maxGrowth is by how much the resident memory may grow between the first tenth of a soak and its end.
const maxGrowth = 8 << 20

// footprint has the resources of a process that could leak.
type footprint struct {
	pjrt.Counts
	goroutines int
	resident   int64 // bytes; 0 where the system does not tell
	heap       int64 // bytes of Go's memory in use; the C library's is the rest of resident
}

func takeFootprint(t *testing.T) footprint {
	t.Helper()
	debug.FreeOSMemory() // the first collection runs finalizers, whose garbage is the second one's
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

// hungry is a step that no machine has the memory for: 16 TiB, in a product that XLA cannot fuse away.
func hungry(b *managed.Builder) {
	regression(b)
	row := graph.BroadcastToDims(graph.ReduceAllMax(b.Field("x")), 1<<21)
	square := graph.Dot(graph.Reshape(row, 1<<21, 1), graph.Reshape(row, 1, 1<<21)).Product()
	b.Metric("huge", graph.ReduceAllMax(graph.Dot(square, graph.Reshape(row, 1<<21, 1)).Product()))
}

// soak has what the rows share: a state, steps on it, and batches of three shapes.
type soak struct {
	state                *managed.State
	train, test, greedy  *managed.Stepper
	batches              []data.Batch
	incomplete, deformed data.Batch
}

func newSoak(t *testing.T, r *xla.Runtime) *soak {
	s := &soak{state: newState(t, r, managed.WithOptimizer(sgd())),
		train: managed.TrainStep(regression), test: managed.TestStep(regression), greedy: managed.TrainStep(hungry)}
	for _, n := range []int{16, 8, 5} {
		s.batches = append(s.batches, first(t, line(t, 64).Batches(n)))
	}
	s.incomplete, s.deformed = s.batches[0], s.batches[0]
	s.incomplete.Fields = s.incomplete.Fields[:1]
	s.deformed.Fields = []data.Field{data.X(make([]float32, 7), 16, 1), s.deformed.Fields[1]}
	return s
}

func (s *soak) close() error {
	return errors.Join(s.train.Close(), s.test.Close(), s.greedy.Close(), s.state.Close())
}

// fail makes steps that fail, each in another way: before the graph, in its building, in its run, and not at all begun.
func (s *soak) fail(t *testing.T) {
	t.Helper()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := s.train.Step(cancelled, s.state, s.batches[0])
	require.ErrorIs(t, err, context.Canceled)
	_, _, err = s.train.Step(t.Context(), s.state, s.deformed)
	require.Error(t, err)
	_, _, err = s.train.StepBlock(t.Context(), s.state, []data.Batch{s.batches[1], s.incomplete})
	require.Error(t, err)
	_, _, err = s.greedy.Step(t.Context(), s.state, s.batches[0])
	require.ErrorIs(t, err, xla.ErrOutOfMemory)
}

// Many steps of every kind leak nothing: objects of PJRT, C memory of the binding, goroutines, uncounted memory.
func TestF18_soak(t *testing.T) {
	steps := soakSteps
	if testing.Short() { // under the race detector, whose own memory says nothing
		steps = 2_000
	}
	for _, row := range []struct {
		name string
		run  func(t *testing.T, s *soak, steps int)
	}{
		{"one by one, logs unread", func(t *testing.T, s *soak, steps int) {
			for i := range steps {
				_, _, err := s.train.Step(t.Context(), s.state, s.batches[i%3])
				require.NoError(t, err)
				// A hundred times: each build that fails leaves some 8 KB, because GoMLX's variables keep the nodes that
				// they had in a graph.
				if i%(steps/100) == 0 {
					s.fail(t)
				}
			}
		}},
		{"one by one, logs read", func(t *testing.T, s *soak, steps int) {
			for i := range steps {
				_, logs, err := s.train.Step(t.Context(), s.state, s.batches[i%3])
				require.NoError(t, err)
				_, err = logs.Float("loss")
				require.NoError(t, err)
			}
		}},
		{"blocks, logs kept for a while", func(t *testing.T, s *soak, steps int) {
			var kept []loop.Logs
			for i := 0; i < steps; {
				var block []data.Batch
				for range 1 + i%97 {
					block = append(block, s.batches[i/500%3])
				}
				_, logs, err := s.train.StepBlock(t.Context(), s.state, block)
				require.NoError(t, err)
				i += len(block)
				if kept = append(kept, logs...); len(kept) > 5000 {
					_, err := kept[0].Float("loss")
					require.NoError(t, err)
					kept = nil
				}
			}
		}},
		{"a loop, tests in between", func(t *testing.T, s *soak, steps int) {
			batches := func(yield func(data.Batch, error) bool) {
				for i := 0; yield(s.batches[i/333%3], nil); i++ {
				}
			}
			result, err := loop.New(loop.On(loop.EachStep, s.train), loop.On(loop.Every(loop.Steps(100)), s.test)).
				Run(t.Context(), s.state, loop.Data[data.Batch](batches), loop.Until(loop.Steps(steps)), loop.Thin(1000))
			require.NoError(t, err)
			require.EqualValues(t, steps, result.Elapsed.Steps)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := plugintest.Uncached(t, xla.KeepPrograms(0))
			before := takeFootprint(t)
			s := newSoak(t, r)
			s.fail(t)
			row.run(t, s, steps/10) // all is compiled, and pools and caches have the size that they come to
			warm := takeFootprint(t)
			row.run(t, s, steps)
			hot := takeFootprint(t)
			if hot.resident-warm.resident >= maxGrowth { // what leaks grows as much again; what malloc keeps free, and is touched late, does not (docs/plugins.md)
				warm = hot
				row.run(t, s, steps)
				hot = takeFootprint(t)
			}
			require.NoError(t, s.close())
			after := takeFootprint(t)

			require.LessOrEqual(t, after.goroutines, before.goroutines)
			require.Equal(t, before.Counts, after.Counts)
			if !testing.Short() {
				require.Less(t, hot.resident-warm.resident, int64(maxGrowth))
			}
			t.Logf("F18: %d steps, %s: resident %+d KiB, of it Go's heap %+d KiB; 0 objects, C allocations and goroutines left", steps,
				strings.ToLower(row.name), (hot.resident-warm.resident)>>10, (hot.heap-warm.heap)>>10)
		})
	}
}
