package xla

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomlx/compute"

	"github.com/lazo-ml/lazo/internal/joined"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

var ranksApart struct{ across, told atomic.Bool }

// tellApart warns once, at rank 0, unless an earlier runtime was opened with [Across].
func tellApart(o *openOptions) {
	job := joined.Now()
	if o.job != nil {
		ranksApart.across.Store(true)
		if job != nil {
			job.Note("")
		}
		return
	}
	if job == nil || ranksApart.across.Load() {
		return
	}
	job.Note("it has opened a runtime without xla.Across, and computes alone: give xla.Open the option xla.Across(job)")
	if job.Rank() > 0 || ranksApart.told.Swap(true) {
		return
	}
	const text = "xla: Open without Across in a job of several processes: each of them computes alone, and trains its own model. " +
		"Give xla.Across(job) with the job of dist.Join"
	if o.log.Enabled(context.Background(), slog.LevelWarn) {
		o.log.Warn(text, "processes", job.Size())
		return
	}
	fmt.Fprintf(os.Stderr, "lazo: %s (%d processes)\n", text, job.Size())
}

type across struct {
	job Job
	by  exchange
	// By rank; concatenated, they are the mesh.
	ids      [][]int
	compiles sync.Mutex
	// Concurrent programs would receive each other's messages.
	runs   sync.Mutex
	number atomic.Int64
}

type exchange interface {
	open(library *pjrt.Plugin, plugin Plugin, options map[string]any) (made *pjrt.Client, ids [][]int, err error)
	compile(client *pjrt.Client, cache *cache, text string, options pjrt.CompileOptions) (*pjrt.Executable, fromCache, error)
	close() error
}

var _, _ exchange = (*byHandlers)(nil), (*byPlugin)(nil)

func newAcross(library *pjrt.Plugin, plugin Plugin, o *openOptions) (*across, error) {
	if o.job == nil || o.job.Size() == 1 {
		return nil, nil
	}
	var by exchange
	var err error
	if plugin.Kind == CPU {
		by, err = newByHandlers(library, plugin, o)
	} else {
		by, err = newByPlugin(plugin, o)
	}
	if err != nil {
		return nil, during(err, "open %q across %d processes", plugin.Kind, o.job.Size())
	}
	return &across{job: o.job, by: by}, nil
}

func (a *across) open(library *pjrt.Plugin, plugin Plugin, options map[string]any) (made *pjrt.Client, err error) {
	if a == nil {
		return newClient(library, plugin, options, nil)
	}
	made, a.ids, err = a.by.open(library, plugin, options)
	if err != nil {
		return nil, during(err, "open %q across %d processes", plugin.Kind, a.job.Size())
	}
	return made, nil
}

func (a *across) own() int { return len(a.ids[0]) }

func (a *across) devices() int { return len(a.ids) * a.own() }

func (a *across) id(n compute.DeviceNum) (int, error) {
	if n < 0 || int(n) >= a.devices() {
		return 0, fmt.Errorf("xla: device %d: all processes have %d", n, a.devices())
	}
	return a.ids[int(n)/a.own()][int(n)%a.own()], nil
}

func (a *across) compile(client *pjrt.Client, cache *cache, name, text string, options pjrt.CompileOptions) (*pjrt.Executable, fromCache, error) {
	a.compiles.Lock()
	defer a.compiles.Unlock()
	defer a.job.Busy("compiling "+name, compileLimit)()
	if err := sameOnRanks(a.job, "compile "+name, text, keyOf(text, options)); err != nil {
		return nil, cacheOff, err
	}
	return a.by.compile(client, cache, text, options)
}

const compileLimit = 30 * time.Minute

func (a *across) enter(program string, runs int, alike []joined.Alike) (leave func(), err error) {
	a.runs.Lock()
	if err := a.sameRun(program, runs, alike); err != nil {
		a.runs.Unlock()
		return nil, err
	}
	return a.runs.Unlock, nil
}

func (a *across) sameRun(program string, runs int, alike []joined.Alike) error {
	number := a.number.Add(1)
	key := fnv.New64a()
	fmt.Fprintln(key, program, runs, number)
	what := fmt.Sprintf("run %d of a program, %s, %d steps", number, program, runs)
	shown := what
	for _, x := range alike {
		shown += ", and of " + x.What
	}
	sums := []int64{int64(key.Sum64())}
	for _, x := range alike {
		of := fnv.New64a()
		_ = binary.Write(of, binary.LittleEndian, x.Sums) // never fails
		sums = append(sums, int64(of.Sum64()))
	}
	equal, err := a.job.EachSame(shown, sums...)
	switch {
	case err != nil:
		return err
	case !equal[0]:
		return disagree(a.job, what, "")
	}
	for i, x := range alike {
		if !equal[i+1] {
			return unlike(a.job, x)
		}
	}
	return nil
}

func (a *across) close() error {
	if a == nil {
		return nil
	}
	return a.by.close()
}
