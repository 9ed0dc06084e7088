package xla

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/joined"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

// Program is a compiled graph. Goroutines may run it concurrently; other uses of a buffer while a run replaces it
// ([Built].InPlace) are [ErrBusy].
type Program struct {
	name  string
	place Placement
	built Built
	runs  runner
	took  time.Duration
	text  string
	block int
	// Those of this process.
	devices int
	across  *across
	mode    runMode
	// 1, 2, … up to the block's size.
	counts []int32
	lists  sync.Pool
	uses   gate.Gate // runs read, Close closes

	counting sync.Mutex // guards fromHLO
	fromHLO  *Cost
}

type lists struct {
	host   []any
	inputs []compute.Buffer
}

// Built is a build function's result. Integers are indices of inputs or outputs.
type Built struct {
	Outputs []*graph.Node
	// InPlace maps outputs to the inputs of the same shape that they replace.
	InPlace map[int]int
	// Host lists inputs from the host's memory.
	Host []int
	// Read lists outputs that only the host reads, like the loss. They may be values that no program takes: see [OnHost].
	Read []int
	// Block asks for this many runs at once: see [Program.Block].
	Block int
	// Scan, with a Length, runs the graph on its own results, as in text generation. It excludes Block.
	Scan Scan
}

// Scan repeats a graph Length times. Outputs that are not carried are stacked on a new first axis.
type Scan struct {
	Length int
	// Carry maps outputs to the inputs of the same shape that they become next. Their last values are outputs.
	Carry map[int]int
	// Each lists inputs that are stacked on a new first axis, one value per time.
	Each []int
}

type runner interface {
	run(inputs []compute.Buffer, host []any, mode runMode) (outputs []compute.Buffer, running *Running, err error)
	// explained adds the runner's knowledge of a run's error.
	explained(err error) error
	close() error
}

type runMode int

const (
	waitForEnd runMode = iota // directly
	goOnCopied                // from a copy, may outlast
	goOnShared                // directly, may outlast
)

// Block returns the most runs that the program makes at once. It is 1 for convolutions on the CPU, for graphs without
// InPlace and Host, and for backends other than XLA.
//
// A block's inputs from the host and its outputs are stacked on a new first axis of this length.
func (p *Program) Block() int { return p.block }

// Placement returns the argument of [Runtime.CompileOver].
func (p *Program) Placement() Placement { return p.place }

// StableHLO returns the program's text, "" without XLA.
func (p *Program) StableHLO() string { return p.text }

// Run runs the program once and waits. inputs has a buffer per input, nil for those from the host. host has slices of
// elements, in the order of [Built].Host. Both are ordered device after device. The run replaces the inputs of
// [Built].InPlace by new buffers and uses up the old ones. The caller owns the outputs.
//
// A failed run leaves the inputs valid, unless the error wraps [ErrInputsLost]: the first run copies up to 256 MiB
// per device.
func (p *Program) Run(inputs []compute.Buffer, host []any) (outputs []compute.Buffer, err error) {
	outputs, _, err = p.do(inputs, host, 1, waitForEnd, nil)
	return outputs, err
}

// Start makes n runs, at most [Program.Block], and may return before they end. Outputs and replaced inputs are usable
// at once. Later errors come from [Running.Wait] and from reading an output.
//
// A block ignores stacked inputs after the first n; stacked outputs are zero there. Results are bit-identical for any
// division into blocks. A block's slices must stay unchanged until the run ends, a single run's until Start returns.
// On the CPU only blocks on one device outlast Start.
//
// alike is compared between a job's processes before the run.
func (p *Program) Start(inputs []compute.Buffer, host []any, n int, alike ...joined.Alike) (outputs []compute.Buffer, running *Running, err error) {
	mode := p.mode
	if mode == goOnCopied && p.block > 1 {
		mode = goOnShared
	}
	return p.do(inputs, host, n, mode, alike)
}

func (p *Program) do(inputs []compute.Buffer, host []any, n int, mode runMode, alike []joined.Alike) (outputs []compute.Buffer, running *Running, err error) {
	if p.uses.Read(context.Background()) != nil {
		return nil, nil, during(errProgramClosed, "run %s", p.name)
	}
	defer p.uses.DoneReading()
	if n < 1 || n > p.block {
		return nil, nil, fmt.Errorf("xla: run %s: %d runs at once: the program makes up to %d", p.name, n, p.block)
	}
	devices := p.devices
	if p.block > 1 {
		pooled, _ := p.lists.Get().(*lists)
		if pooled == nil {
			pooled = new(lists)
		}
		defer func(callers []compute.Buffer) {
			if err == nil {
				p.copyBack(callers, inputs, devices)
			}
			clear(inputs)
			clear(host)
			p.lists.Put(pooled)
		}(inputs)
		inputs, host = p.counted(pooled, inputs, host, n, devices)
	}
	if len(host) != devices*len(p.built.Host) {
		return nil, nil, fmt.Errorf("xla: run %s: expected %d inputs from the host, got %d", p.name, devices*len(p.built.Host), len(host))
	}
	if p.across != nil {
		leave, err := p.across.enter(p.name, n, alike)
		if err != nil {
			return nil, nil, during(err, "run %s", p.name)
		}
		defer leave()
	}
	if outputs, running, err = p.runs.run(inputs, host, mode); err != nil {
		return nil, nil, during(p.runs.explained(err), "run %s", p.name)
	}
	if running != nil {
		running.program = p.name
	}
	return outputs, running, nil
}

func (p *Program) counted(l *lists, inputs []compute.Buffer, host []any, n, devices int) ([]compute.Buffer, []any) {
	l.inputs, l.host = l.inputs[:0], l.host[:0]
	for d := range devices {
		l.inputs = append(append(l.inputs, partOf(inputs, d, devices)...), nil)
		l.host = append(append(l.host, partOf(host, d, devices)...), p.counts[n-1:n])
	}
	return l.inputs, l.host
}

func (p *Program) copyBack(callers, inputs []compute.Buffer, devices int) {
	for d := range devices {
		copy(partOf(callers, d, devices), partOf(inputs, d, devices))
	}
}

func partOf[T any](list []T, d, devices int) []T {
	n := len(list) / devices
	return list[d*n : (d+1)*n]
}

// Close waits for runs and frees the program. Later use is [ErrClosed].
func (p *Program) Close() error {
	if p == nil || p.runs == nil {
		return nil
	}
	return gate.Once(p.uses.Close(p.runs.close))
}

// Running is a run that may be in progress; nil has ended. Goroutines may share it.
type Running struct {
	program   string
	mu        sync.Mutex
	execution *pjrt.Execution
	replaces  bool
	err       error
}

// Wait waits for the run and returns its error. Call it for each run, also repeatedly. A failed run that replaces
// inputs loses them: the error wraps [ErrInputsLost].
func (r *Running) Wait() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.execution == nil {
		return r.err
	}
	err := r.execution.Await()
	err = errors.Join(err, r.execution.Close())
	r.execution = nil
	if err == nil {
		return nil
	}
	if r.replaces {
		err = fmt.Errorf("%w: %w", ErrInputsLost, err)
	}
	r.err = during(err, "run %s", r.program)
	return r.err
}

// Over reports whether the run has ended.
func (r *Running) Over() bool {
	if r == nil {
		return true
	}
	if !r.mu.TryLock() {
		return false // a Wait is in progress
	}
	defer r.mu.Unlock()
	if r.execution == nil {
		return true
	}
	for _, done := range r.execution.Done {
		if ready, err := done.Ready(); err == nil && !ready {
			return false
		}
	}
	return true
}
