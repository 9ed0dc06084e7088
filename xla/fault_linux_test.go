package xla_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

const limitedChild = "LAZO_XLA_TEST_LIMITED"

// F17: under a real memory limit that rises until the program fits, the inputs stay valid, whichever allocation fails.
// 16 TiB are refused before any allocation.
func TestF17_memoryLimit(t *testing.T) {
	if os.Getenv(limitedChild) != "" {
		limited(t)
		return
	}
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestF17_memoryLimit$", "-test.v")
	child.Env = append(os.Environ(), limitedChild+"=1")
	out, err := child.CombinedOutput()
	require.NoError(t, err, string(out))
	said := regexp.MustCompile(`F17: .*`).Find(out)
	require.NotEmpty(t, said)
	t.Logf("%s", said)
}

func limited(t *testing.T) {
	r := plugintest.Uncached(t)
	const mega, numbers, pieces = 1 << 20, 8 << 20, 4 // of 32 MiB
	shape := shapes.Make(dtypes.Float32, numbers)
	p, err := r.Compile("large", func(g *graph.Graph) xla.Built {
		x := graph.Parameter(g, "x", shape)
		outputs := []*graph.Node{graph.OnePlus(x)}
		for n := range pieces {
			outputs = append(outputs, graph.AddScalar(x, n))
		}
		return xla.Built{Outputs: outputs, InPlace: map[int]int{0: 0}}
	})
	require.NoError(t, err)
	flat := make([]float32, numbers)
	flat[7] = 4
	x, err := r.BufferFromFlatData(0, flat, shape)
	require.NoError(t, err)
	inputs, got := []compute.Buffer{x}, make([]float32, numbers)
	failed := 0
	for room := 24; ; room += 32 {
		limit(t, room*mega)
		outputs, err := p.Run(inputs, nil)
		limit(t, -1)
		for _, o := range outputs {
			require.NoError(t, o.Finalize())
		}
		require.NoError(t, inputs[0].ToFlatData(got))
		if err == nil {
			require.EqualValues(t, 5, got[7])
			require.Positive(t, failed)
			require.NoError(t, errors.Join(p.Close(), x.Finalize()))
			fmt.Printf("F17: room for 24 to %d MiB: %d runs found none for some piece and left the inputs, then one did\n", room, failed)
			return
		}
		failed++
		require.ErrorIs(t, err, xla.ErrOutOfMemory, "room for %d MiB", room)
		require.True(t, slices.Equal(flat, got), "room for %d MiB", room)
		require.Less(t, room, 4096)
	}
}

// limit lets the process allocate this many more bytes of address space; -1 removes the limit.
func limit(t *testing.T, more int) {
	t.Helper()
	var now unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_AS, &now))
	now.Cur = now.Max
	if more >= 0 {
		var pages uint64
		text, err := os.ReadFile("/proc/self/statm")
		require.NoError(t, err)
		_, err = fmt.Sscan(string(text), &pages)
		require.NoError(t, err)
		now.Cur = pages*uint64(os.Getpagesize()) + uint64(more)
	}
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_AS, &now))
}
