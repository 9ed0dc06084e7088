package xla

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/internal/joined"
	"github.com/lazo-ml/lazo/xla/pjrt"
	"github.com/lazo-ml/lazo/xla/spmd"
)

// Across opens the runtime for all processes of a job: a program over a mesh of [Runtime.NumDevices] devices runs in
// each process on that one's own, and exchanges with the others. On the CPU each process is one device, XLA's
// partitioner divides the program as it does for several devices of one process, and the exchange goes by MPI. A job of
// one process changes nothing; a nil one is an error.
//
// All processes make the same programs and run them in the same order: what differs is [ErrDisagree].
func Across(job *dist.Job) Option {
	return func(o *options) {
		if job == nil {
			o.err = errors.New("xla: Across is given no job: see dist.Join")
		}
		o.job = job
	}
}

// ErrDisagree: the processes of a job compile or run different programs.
var ErrDisagree = dist.ErrDisagree

// Job is the job whose processes the runtime was opened across; nil for a process alone.
func (r *Runtime) Job() *dist.Job {
	if r == nil {
		return nil
	}
	if c, ok := r.Backend.(*client); ok && c.across != nil {
		return c.across.job
	}
	return nil
}

// Local are the devices of a mesh that this process has: n from the first on. Without [Across] it has them all.
// Programs take and give the values of these alone.
func (r *Runtime) Local(m Mesh) (first, n int) {
	n = m.Devices()
	if c, ok := r.Backend.(*client); ok && c.across != nil && n > 1 {
		return c.across.job.Rank(), 1
	}
	return 0, n
}

// apart are the runtimes of this process without [Across] beside its job, or those with it.
var apart struct{ across, told atomic.Bool }

// tellApart says once, at rank 0, that each rank of a job is about to train for itself: a program that forgot [Across]
// would go on to the end, and show nothing but one of its models. Once a runtime was opened across the job, another one
// is the rank's own.
func tellApart(o *options) {
	if o.job != nil {
		apart.across.Store(true)
		return
	}
	job := joined.Now()
	if job == nil || job.Rank() > 0 || apart.across.Load() || apart.told.Swap(true) {
		return
	}
	const text = "xla: Open without Across in a job of several processes: each of them computes for itself, and trains a model of its own. " +
		"Give xla.Across(job) with the job of dist.Join"
	if o.log.Enabled(context.Background(), slog.LevelWarn) {
		o.log.Warn(text, "processes", job.Size())
		return
	}
	fmt.Fprintf(os.Stderr, "lazo: %s (%d processes)\n", text, job.Size())
}

// across is what a client has for a job of several processes.
type across struct {
	job *dist.Job
	// divide makes the client whose devices stand for all processes: XLA's partitioner wants them. Only rank 0 does.
	divide   func() (*pjrt.Client, error)
	divider  *pjrt.Client
	compiles sync.Mutex
	// A program at a time: two that exchange at once would meet each other's messages.
	runs   sync.Mutex
	number atomic.Int64 // of programs that were begun
}

// maxRanks is how many devices XLA's CPU can divide a program over: what has a higher number counts as another
// process's, and the plugin refuses it.
const maxRanks = 2048

// rankLimit is an error for more processes than a program can be divided over.
func rankLimit(ranks int) error {
	if ranks > maxRanks {
		return fmt.Errorf("%w: XLA's CPU plugin divides a program over %d devices at most: start fewer processes", ErrUnimplemented, maxRanks)
	}
	return nil
}

// handlers are the plugins, by their paths, that know MPI's calls: they keep them until the process ends.
var handlers = struct {
	sync.Mutex
	of map[string]bool
}{of: map[string]bool{}}

// newAcross prepares the plugin for a job; nil for one process.
func newAcross(library *pjrt.Plugin, plugin Plugin, o *options) (*across, error) {
	if o.job == nil || o.job.Size() == 1 {
		return nil, nil
	}
	world := o.job.MPI()
	switch {
	case plugin.Kind != CPU:
		return nil, fmt.Errorf("xla: open %q across %d processes: %w: expected the plugin %q", plugin.Kind, o.job.Size(), ErrUnimplemented, CPU)
	case world == nil:
		return nil, fmt.Errorf("xla: open %q across %d processes: the processes have no MPI to exchange by: start them by lazo run or mpirun", plugin.Kind, o.job.Size())
	case o.client[cpuDevices] != int64(1):
		return nil, fmt.Errorf("xla: open %q across %d processes: client option %q is %v: each process is one device: start more processes",
			plugin.Kind, o.job.Size(), cpuDevices, o.client[cpuDevices])
	}
	if err := rankLimit(o.job.Size()); err != nil {
		return nil, fmt.Errorf("xla: open %q across %d processes: %w", plugin.Kind, o.job.Size(), err)
	}
	handlers.Lock()
	defer handlers.Unlock()
	if !handlers.of[plugin.Path] {
		for _, h := range world.Handlers() {
			if err := library.RegisterHandler(h.Name, "Host", h.Function); err != nil {
				return nil, during(err, "open %s across %d processes", plugin.Path, o.job.Size())
			}
		}
		handlers.of[plugin.Path] = true
	}
	return &across{job: o.job, divide: func() (*pjrt.Client, error) {
		return newClient(library, plugin, map[string]any{cpuDevices: int64(o.job.Size())})
	}}, nil
}

// compile compiles a program that is divided over all processes, for this one.
func (a *across) compile(c *client, name, text string, options pjrt.CompileOptions) (*pjrt.Executable, fromCache, error) {
	a.compiles.Lock()
	defer a.compiles.Unlock()
	defer a.job.Busy("compiling "+name, compileLimit)()
	if err := a.same("compile "+name, text, keyOf(text, options)); err != nil {
		return nil, cacheOff, err
	}
	module, err := a.divided(text, options)
	if err != nil {
		return nil, cacheOff, err
	}
	module, _, err = spmd.Rewrite(module, a.job.Size())
	if err != nil {
		return nil, cacheOff, err
	}
	own := options
	own.Replicas, own.Partitions, own.SPMD, own.Shardy = 1, 1, false, false
	own.Devices = []int{c.devices[0].ID()}
	return c.cache.compile(c.client, unsafe.String(unsafe.SliceData(module), len(module)), own, func() (*pjrt.Executable, error) {
		return c.client.CompileHLO(module, own)
	})
}

// compileLimit is how long the processes wait for one that compiles.
const compileLimit = 30 * time.Minute

// divided has rank 0 divide the program, and hands its result to all: XLA's partitioner runs once, and all have the
// same.
func (a *across) divided(text string, options pjrt.CompileOptions) ([]byte, error) {
	const failed, made = 0, 1
	var message []byte
	if a.job.Rank() == 0 {
		module, err := a.partition(text, options)
		if err != nil {
			message = append([]byte{failed}, err.Error()...)
		} else {
			message = append([]byte{made}, module...)
		}
		if message, sendErr := a.job.Broadcast(message); err != nil || sendErr != nil {
			return message, errors.Join(err, sendErr)
		}
		return module, nil
	}
	message, err := a.job.Broadcast(nil)
	switch {
	case err != nil:
		return nil, err
	case len(message) == 0 || message[0] != made:
		return nil, fmt.Errorf("rank 0: %s", bytes.TrimPrefix(message, []byte{failed}))
	}
	return message[1:], nil
}

func (a *across) partition(text string, options pjrt.CompileOptions) ([]byte, error) {
	if a.divider == nil {
		var err error
		if a.divider, err = a.divide(); err != nil {
			return nil, err
		}
	}
	options.Devices = nil
	for _, d := range a.divider.Devices() {
		options.Devices = append(options.Devices, d.ID())
	}
	return spmd.Partition(a.divider, []byte(text), options)
}

// same tells whether all processes are about to do the same thing; text is that of a program, and is compared where it
// is not.
func (a *across) same(what, text string, key programKey) error {
	same, err := a.job.Same(int64(binary.LittleEndian.Uint64(key[:])))
	if same || err != nil {
		return err
	}
	zero, err := a.job.Broadcast([]byte(text))
	if err != nil {
		return err
	}
	if text != string(zero) {
		what += ", " + firstDifference(string(zero), text)
	}
	all, err := a.job.AllGather([]byte(what))
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for rank, other := range all {
		fmt.Fprintf(&list, "\n\trank %d: %s", rank, other)
	}
	return fmt.Errorf("%w: they differ in what they are about to do:%s", ErrDisagree, list.String())
}

// firstDifference is the first line of a program that is another one than at rank 0.
func firstDifference(zero, own string) string {
	a, b := strings.Split(zero, "\n"), strings.Split(own, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d of the program is %.200q, that of rank 0 %.200q", i+1, strings.TrimSpace(b[i]), strings.TrimSpace(a[i]))
		}
	}
	return fmt.Sprintf("the program has %d lines, that of rank 0 %d", len(b), len(a))
}

// enter begins a run of a program when no other is under way, and looks that all processes begin the same one.
func (a *across) enter(p *Program, runs int) (leave func(), err error) {
	a.runs.Lock()
	number := a.number.Add(1)
	key := fnv.New64a()
	fmt.Fprintln(key, p.name, runs, number)
	var sum programKey
	key.Sum(sum[:0])
	if err := a.same(fmt.Sprintf("run %d of a program, %s, %d steps", number, p.name, runs), "", sum); err != nil {
		a.runs.Unlock()
		return nil, err
	}
	return a.runs.Unlock, nil
}

func (a *across) close() error {
	if a == nil || a.divider == nil {
		return nil
	}
	return a.divider.Close()
}
