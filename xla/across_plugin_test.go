package xla_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/internal/ranks"
	"github.com/lazo-ml/lazo/xla"
)

// fakeVariable has the path of the fake plugin, which replaces that of an accelerator.
const fakeVariable = "LAZO_TEST_FAKE"

// overFake returns options of ranks that open the fake plugin.
func overFake(t *testing.T, env ...string) func(*launch.Options) {
	t.Helper()
	if ranks.Inside(t) {
		return nil
	}
	library := plugintest.Fake(t)
	return func(o *launch.Options) {
		o.NoMPI, o.Mpirun = true, ""
		o.Env = append(append(o.Env, fakeVariable+"="+library, "LAZO_DEADLINE=5s"), env...)
	}
}

func joined(t *testing.T) *dist.Job {
	t.Helper()
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			require.NoError(t, job.Close())
		}
	})
	return job
}

func openFake(t *testing.T, job *dist.Job, options ...xla.Option) *xla.Runtime {
	t.Helper()
	r, err := xla.Open(t.Context(), os.Getenv(fakeVariable), append(options, xla.Across(job))...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// overAll shards x over all devices and replicates everything else.
func overAll(r *xla.Runtime) xla.Placement {
	return xla.Placement{
		Mesh: xla.Mesh{Axes: []xla.MeshAxis{{Name: "data", Size: r.NumDevices()}}},
		Split: func(name string, _ shapes.Shape) xla.Split {
			if name == "x" {
				return xla.Split{{"data"}}
			}
			return nil
		},
	}
}

// sumProgram adds up each device's four numbers over all devices.
func sumProgram(r *xla.Runtime) (*xla.Program, error) {
	n := r.NumDevices()
	return r.CompileOver(overAll(r), "sum", func(g *graph.Graph) xla.Built {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 4*n))
		return xla.Built{Outputs: []*graph.Node{graph.ReduceSum(graph.Reshape(x, n, 4), 0)}}
	})
}

// numbers are the values of a device of the mesh.
func numbers(device int) []float32 {
	list := make([]float32, 4)
	for i := range list {
		list[i] = float32(1000*device + i)
	}
	return list
}

// runSum puts this process's part, runs the sum and checks its devices' results.
func runSum(t *testing.T, r *xla.Runtime, p *xla.Program) {
	t.Helper()
	first, own := r.Local(p.Placement().Mesh)
	want := make([]float32, 4)
	for d := range r.NumDevices() {
		for i, v := range numbers(d) {
			want[i] += v
		}
	}
	var inputs []compute.Buffer
	for d := range own {
		b, err := r.BufferFromFlatData(compute.DeviceNum(d), numbers(first+d), four)
		require.NoError(t, err)
		inputs = append(inputs, b)
	}
	outputs, err := p.Run(inputs, nil)
	require.NoError(t, err)
	require.Len(t, outputs, own)
	for d, b := range outputs {
		got := make([]float32, 4)
		require.NoError(t, b.ToFlatData(got))
		require.Equal(t, want, got, "device %d", first+d)
		on, err := b.DeviceNum()
		require.NoError(t, err)
		require.Equal(t, compute.DeviceNum(d), on)
	}
	for d, b := range inputs {
		got := make([]float32, 4)
		require.NoError(t, b.ToFlatData(got))
		require.Equal(t, numbers(first+d), got)
	}
	for _, b := range slices.Concat(inputs, outputs) {
		require.NoError(t, b.Finalize())
	}
}

// The devices of all processes are one mesh, whatever their IDs. Each process puts, runs and fetches its own part.
func TestAcross_accelerators(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		ranks, own int
		env        []string
	}{{2, 2, nil}, {4, 2, nil}, {3, 2, []string{"LAZO_FAKE_TILED=1"}}, {2, 1, []string{"LAZO_FAKE_DEVICES=1"}}, {2, 4, []string{"LAZO_FAKE_DEVICES=4", "LAZO_FAKE_AGAIN=1"}}} {
		t.Run(fmt.Sprint(row.ranks, " of ", row.own), func(t *testing.T) {
			if !ranks.Over(t, row.ranks, overFake(t, row.env...)) {
				return
			}
			job := joined(t)
			r := openFake(t, job)
			require.Equal(t, row.ranks*row.own, r.NumDevices())
			require.Len(t, r.Devices(), row.own)
			require.Same(t, job, r.Job())
			place := overAll(r)
			first, own := r.Local(place.Mesh)
			require.Equal(t, [2]int{job.Rank() * row.own, row.own}, [2]int{first, own})
			first, own = r.Local(xla.Mesh{})
			require.Equal(t, [2]int{0, 1}, [2]int{first, own}, "a program that each runs alone")

			p, err := sumProgram(r)
			require.NoError(t, err)
			for range 3 {
				runSum(t, r, p)
			}
			described, err := xla.OpenTopology(t.Context(), os.Getenv(fakeVariable), fmt.Sprint("fake:", r.NumDevices()))
			require.NoError(t, err)
			same, err := sumProgram(described)
			require.NoError(t, err)
			require.Equal(t, same.StableHLO(), p.StableHLO(), "the program that a described machine of as many devices compiles")
			require.NoError(t, described.Close())

			// The plugin receives each part's device by ID.
			placed, err := r.CompileOver(place, "place", func(g *graph.Graph) xla.Built {
				x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 4*r.NumDevices()))
				return xla.Built{Outputs: []*graph.Node{graph.AddScalar(x, 1)}, InPlace: map[int]int{0: 0}}
			})
			require.NoError(t, err)
			first, own = r.Local(place.Mesh)
			var parts []compute.Buffer
			for d := range own {
				b, err := r.BufferFromFlatData(compute.DeviceNum(d), []float32{0, 0, 0, 0}, four)
				require.NoError(t, err)
				parts = append(parts, b)
			}
			_, err = placed.Run(parts, nil)
			require.NoError(t, err)
			for d, b := range parts {
				got := make([]float32, 4)
				require.NoError(t, b.ToFlatData(got))
				require.Equal(t, slices.Repeat([]float32{float32(first + d)}, 4), got)
			}
			require.NoError(t, placed.Close())

			// A replicated state is updated in place by the sum of the batch's parts.
			step, err := r.CompileOver(place, "step", func(g *graph.Graph) xla.Built {
				w := graph.Parameter(g, "w", four)
				x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 4*r.NumDevices()))
				return xla.Built{Outputs: []*graph.Node{graph.Add(w, graph.ReduceSum(graph.Reshape(x, -1, 4), 0))}, InPlace: map[int]int{0: 0}, Host: []int{1}}
			})
			require.NoError(t, err)
			var inputs []compute.Buffer
			var host []any
			for d := range own {
				b, err := r.BufferFromFlatData(compute.DeviceNum(d), []float32{0, 0, 0, 0}, four)
				require.NoError(t, err)
				inputs, host = append(inputs, b, nil), append(host, numbers(first+d))
			}
			const steps = 5
			for range steps {
				_, running, err := step.Start(inputs, host, 1)
				require.NoError(t, err)
				require.NoError(t, running.Wait())
			}
			for d := range own {
				got, all := make([]float32, 4), row.ranks*row.own
				require.NoError(t, inputs[2*d].ToFlatData(got))
				require.Equal(t, float32(steps*1000*all*(all-1)/2), got[0])
			}

			_, err = r.BufferFromFlatData(compute.DeviceNum(own), numbers(0), four)
			require.ErrorContains(t, err, "device", "another process's device")
			if all := r.NumDevices(); all > 2 {
				_, err = r.CompileOver(xla.Placement{Mesh: xla.Mesh{Axes: []xla.MeshAxis{{Name: "data", Size: all - 1}}}}, "sum", nil)
				require.ErrorContains(t, err, fmt.Sprintf("expected all %d", all))
			}
			require.NoError(t, p.Close())
			require.NoError(t, step.Close())

			// The processes of a second runtime find each other by separate keys.
			second := openFake(t, job)
			p, err = sumProgram(second)
			require.NoError(t, err)
			runSum(t, second, p)
			require.NoError(t, p.Close())
		})
	}
}

// Keys of an earlier start in a store are ignored, and the given store is used.
func TestAcross_staleKeys(t *testing.T) {
	t.Parallel()
	if !ranks.Over(t, 2, overFake(t)) {
		return
	}
	job := joined(t)
	if job.Rank() == 0 {
		for _, key := range []string{"local_topology/fake/0", "local_topology/fake/1", "global_topology/fake", "failed", "xla/failed"} {
			require.NoError(t, job.Put(t.Context(), key, []byte("of an earlier start")))
		}
	}
	require.NoError(t, job.Barrier("stale"))
	given := &countingStore{Store: job}
	r := openFake(t, job, xla.WithStore(given))
	p, err := sumProgram(r)
	require.NoError(t, err)
	runSum(t, r, p)
	require.NoError(t, p.Close())
	require.NotEmpty(t, given.put)
	for _, key := range given.put {
		require.True(t, strings.HasPrefix(key, "xla/") && strings.Count(key, "/") > 2, key)
	}
}

// countingStore records the keys that are put.
type countingStore struct {
	dist.Store
	put []string
}

func (c *countingStore) Put(ctx context.Context, key string, value []byte) error {
	c.put = append(c.put, key)
	return c.Store.Put(ctx, key, value)
}

// If one process cannot open its plugin, no other waits in vain, and all report why.
func TestAcross_aProcessFails(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ env, says string }{
		"the second": {"LAZO_FAKE_REFUSE=1", "no memory for a fake"},
		"the first":  {"LAZO_FAKE_REFUSE=0", "no memory for a fake"},
	} {
		t.Run(name, func(t *testing.T) {
			if !ranks.Over(t, 3, overFake(t, row.env, "LAZO_FAKE_WAIT=20000")) {
				return
			}
			job := joined(t)
			start := time.Now()
			_, err := xla.Open(t.Context(), os.Getenv(fakeVariable), xla.Across(job))
			t.Log(err)
			require.ErrorContains(t, err, row.says)
			if of := row.env[len(row.env)-1:]; of != strconv.Itoa(job.Rank()) {
				require.ErrorContains(t, err, "rank "+of)
			} else {
				require.ErrorIs(t, err, xla.ErrOutOfMemory)
			}
			require.Less(t, time.Since(start), 15*time.Second)
		})
	}
}

// A process that dies before its topology is known ends the job, as quickly as at any other time.
func TestAcross_aProcessDies(t *testing.T) {
	t.Parallel()
	if ranks.Inside(t) {
		job := joined(t)
		_, err := xla.Open(t.Context(), os.Getenv(fakeVariable), xla.Across(job))
		t.Fatal("the job goes on: ", err)
	}
	start := time.Now()
	said, err := ranks.Start(t, 3, overFake(t, "LAZO_FAKE_DIE=1"))
	require.Error(t, err)
	require.Contains(t, said, "rank 1")
	require.Contains(t, said, "was lost")
	require.NotContains(t, said, "the job goes on")
	require.Less(t, time.Since(start), 30*time.Second)
}

// Different numbers of devices and different programs are refused by all processes.
func TestAcross_acceleratorsDisagree(t *testing.T) {
	t.Parallel()
	if !ranks.Over(t, 2, overFake(t)) {
		return
	}
	job := joined(t)
	require.NoError(t, os.Setenv("LAZO_FAKE_DEVICES", strconv.Itoa(1+job.Rank())))
	_, err := xla.Open(t.Context(), os.Getenv(fakeVariable), xla.Across(job))
	require.ErrorContains(t, err, "the processes have different numbers of devices")
	require.ErrorContains(t, err, "rank 0 has the devices [0] of [0 1 2]\n\trank 1 has the devices [1 2] of [0 1 2]")
	require.NoError(t, os.Unsetenv("LAZO_FAKE_DEVICES"))

	r := openFake(t, job)
	_, err = r.CompileOver(overAll(r), fmt.Sprint("of", job.Rank()), func(g *graph.Graph) xla.Built {
		x := graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 16))
		return xla.Built{Outputs: []*graph.Node{graph.AddScalar(x, 1)}}
	})
	require.ErrorIs(t, err, dist.ErrDisagree)
	require.ErrorContains(t, err, "compile of0")
	require.ErrorContains(t, err, "compile of1")
}

// The processes load from their caches, or all compile.
func TestAcross_cache(t *testing.T) {
	t.Parallel()
	if !ranks.Over(t, 2, overFake(t)) {
		return
	}
	job := joined(t)
	dir := t.TempDir()
	for round, want := range []string{"miss", "hit", "miss", "hit"} {
		var log bytes.Buffer
		r, err := xla.Open(t.Context(), os.Getenv(fakeVariable), xla.Across(job), xla.CompileCache(dir, 0), xla.Log(slog.New(slog.NewTextHandler(&log, nil))))
		require.NoError(t, err)
		p, err := sumProgram(r)
		require.NoError(t, err)
		require.Contains(t, log.String(), "program=sum cache="+want, "round %d", round)
		runSum(t, r, p)
		require.NoError(t, p.Close())
		require.NoError(t, r.Close())
		if round == 1 && job.Rank() == 1 {
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, entries, 1)
			require.NoError(t, os.Remove(dir+"/"+entries[0].Name()))
		}
	}
}
