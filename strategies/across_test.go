package strategies_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Two processes of two devices each, simulated by the fake plugin: a step of the whole batch, passed whole or in parts,
// and values that are replicated or sharded.
func TestDataParallel_severalDevicesOfAProcess(t *testing.T) {
	const variable, n, own = "LAZO_TEST_FAKE", 2, 2
	var fake func(*launch.Options)
	if !ranks.Inside(t) {
		library := plugintest.Fake(t)
		fake = func(o *launch.Options) { o.NoMPI, o.Env = true, append(o.Env, variable+"="+library) }
	}
	if !ranks.Over(t, n, fake) {
		return
	}
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	r, err := xla.Open(t.Context(), os.Getenv(variable), xla.Across(job))
	require.NoError(t, err)
	s, err := strategies.DataParallel(r, strategies.Parallel{Shard: func(name string, _ shapes.Shape) xla.Split {
		if name == "/cut" {
			return xla.Split{{strategies.DataAxis}}
		}
		return nil
	}})
	require.NoError(t, err)
	require.Equal(t, n*own, s.NumDevices())

	cut := make([]float32, 4*n*own)
	for i := range cut {
		cut[i] = float32(i)
	}
	for _, name := range []string{"/cut", "/whole"} {
		values := cut
		if name == "/whole" {
			values = cut[:4]
		}
		b, err := s.Put(name, tensors.FromValue(values))
		require.NoError(t, err)
		fetched, err := s.Fetch(b)
		require.NoError(t, err)
		require.Equal(t, values, fetched.Value())
		require.NoError(t, s.Free(b))
	}
	// Which parts of a value this process is to save: its own, and of those that several devices have the first one's.
	for i, want := range [][][]int{{{8 * job.Rank()}, {8*job.Rank() + 4}}, {{0}, {4}}} { // the plugin takes 16 bytes at most
		model := i + 1
		if model == 2 && job.Rank() > 0 {
			want = nil // the devices of rank 0 have all of it
		}
		s, err := strategies.DataParallel(r, strategies.Parallel{ModelDevices: model, Shard: func(name string, _ shapes.Shape) xla.Split {
			switch {
			case name != "/cut":
				return nil
			case model > 1:
				return xla.Split{{strategies.ModelAxis}}
			}
			return xla.Split{{strategies.DataAxis}}
		}})
		require.NoError(t, err)
		b, err := s.Put("/cut", tensors.FromValue(cut[:len(cut)/model]))
		require.NoError(t, err)
		parts, isCut := s.Parts(b)
		require.True(t, isCut)
		var starts [][]int
		for _, part := range parts {
			starts = append(starts, part.Start)
			memory := make([]byte, part.Shape.ByteSize())
			require.NoError(t, s.FetchInto(part.Buffer, memory))
			values, err := safetensors.Values[float32](memory)
			require.NoError(t, err)
			require.Equal(t, cut[part.Start[0]:part.Start[0]+part.Shape.Size()], values)
		}
		require.Equal(t, want, starts, "groups of %d", model)
		require.NoError(t, s.Free(b))
		whole, err := s.Put("/whole", tensors.FromValue(cut[:4]))
		require.NoError(t, err)
		_, isCut = s.Parts(whole)
		require.False(t, isCut)
		require.NoError(t, s.Free(whole))
	}
	_, err = s.Put("/whole", tensors.FromValue([]float32{float32(job.Rank()), 0, 0, 0}))
	require.ErrorIs(t, err, dist.ErrDisagree)

	batch := data.Batch{Fields: []data.Field{data.X(cut, len(cut))}}
	part := data.Batch{Fields: []data.Field{data.X(cut[job.Rank()*4*own:(job.Rank()+1)*4*own], 4*own)}, At: job.Rank() * 4 * own, Part: data.Part{Rank: job.Rank(), Of: n, Samples: len(cut)}}
	var results [][]float32
	for _, b := range []data.Batch{batch, part} {
		b, err := s.Batch(b)
		require.NoError(t, err)
		inputs, err := strategies.Inputs(b)
		require.NoError(t, err)
		p, err := s.Compile(strategies.Step{Name: "step", Batch: inputs, Build: func(g *graph.Graph, batch []*graph.Node) strategies.Built {
			w := graph.Parameter(g, "/w", shapes.Make(dtypes.Float32, 4))
			return strategies.Built{Alone: true, State: []strategies.Slot{{Parameter: w, New: graph.Add(w, graph.ReduceSum(graph.Reshape(batch[0], -1, 4), 0))}}}
		}})
		require.NoError(t, err)
		state, err := s.Put("/w", tensors.FromValue([]float32{0, 0, 0, 0}))
		require.NoError(t, err)
		buffers := []compute.Buffer{state}
		for range 3 {
			_, _, running, err := p.Start(buffers, []data.Batch{b})
			require.NoError(t, err)
			if running != nil {
				require.NoError(t, running.Wait())
			}
		}
		fetched, err := s.Fetch(state)
		require.NoError(t, err)
		results = append(results, fetched.Value().([]float32))
		require.NoError(t, s.Free(state))
		require.NoError(t, p.Close())
	}
	require.Equal(t, []float32{72, 84, 96, 108}, results[0])
	require.Equal(t, results[0], results[1])

	// Which part a process is given where devices work on the same examples in groups.
	for model, want := range map[int]string{1: "", 2: "", 4: "expected a whole one: groups of 4 devices"} {
		s, err := strategies.DataParallel(r, strategies.Parallel{ModelDevices: model})
		require.NoError(t, err)
		_, err = s.Batch(part)
		if want == "" {
			require.NoError(t, err, "groups of %d", model)
		} else {
			require.ErrorContains(t, err, want)
		}
		other := part
		other.Part.Rank = 1 - job.Rank()
		_, err = s.Batch(other)
		require.ErrorContains(t, err, fmt.Sprint("part ", 1-job.Rank(), " of 2"))
	}
	require.NoError(t, r.Close())
	require.NoError(t, job.Close())
}
