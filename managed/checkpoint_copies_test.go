package managed_test

import (
	"context"
	goruntime "runtime"
	"testing"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// fetches notes what leaves the device, and where it goes.
type fetches struct {
	strategies.Strategy
	tensors int
	into    map[*byte]int // times, for each place
}

func (f *fetches) Fetch(b compute.Buffer) (*tensors.Tensor, error) {
	f.tensors++
	return f.Strategy.Fetch(b)
}

func (f *fetches) FetchInto(b compute.Buffer, memory []byte) error {
	f.into[unsafe.SliceData(memory)]++
	return f.Strategy.FetchInto(b, memory)
}

// A save in the background copies each value once, from the device into the memory of the save before; one that waits
// for the disk, through one place for all values.
func TestContentIsCopiedOnce(t *testing.T) {
	const saves, numbers = 6, 1 << 20
	for _, way := range []string{"async", "sync"} {
		t.Run(way, func(t *testing.T) {
			f := folder(t, checkpoint.Options{Keep: []checkpoint.Retention{{Last: 1}}})
			strategy := &fetches{Strategy: strategies.Jit(plugintest.CPU(t)), into: map[*byte]int{}}
			state, err := managed.New(strategy)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, state.Close()) })
			step := stepper(t, managed.TestStep(func(b *managed.Builder) {
				for _, name := range []string{"a", "b", "c"} {
					b.Scope().VariableWithValue(name, make([]float32, numbers)).NodeValue(b.Graph())
				}
				b.Metric("x", b.Field("x"))
			}))
			require.NoError(t, step.Prepare(t.Context(), state, first(t, line(t, 1).Batches(1))))
			values := len(state.Names())
			async := f.Async()
			save := func(n int) {
				content, err := state.Content(t.Context())
				require.NoError(t, err)
				if way == "sync" {
					require.NoError(t, f.Save(t.Context(), checkpoint.Step(n), content))
					return
				}
				require.NoError(t, async.Save(t.Context(), checkpoint.Step(n), content))
				require.NoError(t, async.Wait(context.Background()))
			}
			save(1)
			taken := allocated()
			for n := range saves {
				save(n + 2)
			}
			taken = allocated() - taken
			require.NoError(t, async.Close())
			copies := 0
			for _, n := range strategy.into {
				copies += n
			}
			require.Zero(t, strategy.tensors, "no tensor in between")
			require.Equal(t, (saves+1)*values, copies)
			if way == "async" {
				require.Len(t, strategy.into, values, "each value goes to its place")
				require.Less(t, taken, uint64(4*numbers), "not even one value's memory was taken anew")
			} else {
				require.Less(t, taken, uint64(saves*8*numbers), "less than two of three values in a save")
			}
			t.Logf("%d saves of %d values (12 MB): %d copies, to %d places; %.1f MB of memory taken after the first save",
				saves+1, values, copies, len(strategy.into), float64(taken)/1e6)
		})
	}
}

// allocated are all bytes that Go ever took.
func allocated() uint64 {
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.TotalAlloc
}
