package callbacks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"runtime/trace"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/loop"
)

// Profile profiles a window of a run: it begins after from and is length long, both in one unit (a [loop.Date] takes
// a length of [loop.Time]). Steps(100) and Steps(10) mean steps 101 to 110. Steps(0) includes the first step, which
// compiles. It writes into the directory
//
//	trace.out   for go tool trace
//	time.pprof  100 samples a second of the run's goroutine, waiting or not; for go tool pprof
//	cpu.pprof   Go's threads only, without the device's and XLA's
//	heap.pprof  the memory in use at the end of the window
//	xla         the output at the window's beginning of the state's method DumpXLA(dir string) error, if any
//
// The window ends with the run, whose end returns errors. Windows must not overlap.
func Profile(dir string, from, length loop.Period) loop.Callback {
	begin, end, err := window(from, length)
	c := loop.Callback{Name: "profile " + dir, When: windowSchedule(begin, end), AtRank0: true, Err: err}
	c.Start = func(loop.Beginning) (loop.Attendant, error) {
		if err != nil {
			return nil, &refusal{"profile", err}
		}
		return &profile{dir: dir, begin: begin, end: end}, nil
	}
	return c
}

func window(from, length loop.Period) (begin, end loop.Period, err error) {
	if from == nil || length == nil {
		return nil, nil, errors.New("the window has no start or no length")
	}
	if from.Length() < 0 || length.Length() <= 0 {
		return nil, nil, fmt.Errorf("the window must have a positive length and begin at 0 or later, got %s from %s", length, from)
	}
	switch from := from.(type) {
	case loop.Steps:
		if l, ok := length.(loop.Steps); ok {
			return from, sum(from, l), nil
		}
	case loop.Samples:
		if l, ok := length.(loop.Samples); ok {
			return from, sum(from, l), nil
		}
	case loop.Time:
		if l, ok := length.(loop.Time); ok {
			return from, sum(from, l), nil
		}
	case loop.Date:
		if l, ok := length.(loop.Time); ok && from > 0 {
			return from, sum(from, loop.Date(l)), nil
		}
	}
	return nil, nil, fmt.Errorf("profile: the start and the length of the window must have the same unit, got %s from %s", length, from)
}

func windowSchedule(begin, end loop.Period) loop.Schedule {
	if begin == nil {
		return loop.Never
	}
	if _, isDate := begin.(loop.Date); !isDate && begin.Length() == 0 {
		return loop.AtStart.Or(loop.At(end))
	}
	return loop.At(begin).Or(loop.At(end))
}

type profile struct {
	dir        string
	begin, end loop.Period
	begun      bool
	trace, cpu *os.File
	wall       *wall
	errs       []error
}

func (p *profile) Watch(_ context.Context, r loop.Report) error {
	switch {
	case r.Elapsed.Reached(p.end):
		p.stop()
	case !p.begun && r.Elapsed.Reached(p.begin):
		p.begun = true
		p.start(r)
	}
	return nil
}

func (p *profile) start(r loop.Report) {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		p.note("profile", err)
		p.begun, p.begin = false, nil
		return
	}
	if dumper, ok := abilities.StateAs[abilities.XLADumper](r); ok {
		dir := filepath.Join(p.dir, "xla")
		err := os.MkdirAll(dir, 0o755)
		if err == nil {
			err = shield.Run(func() error { return dumper.DumpXLA(dir) })
		}
		p.note("dump of the XLA programs", err)
	}
	var err error
	p.trace, err = p.into("trace.out", func(f *os.File) error { return trace.Start(f) })
	p.note("trace", err)
	p.cpu, err = p.into("cpu.pprof", func(f *os.File) error { return pprof.StartCPUProfile(f) })
	p.note("CPU profile", err)
	p.wall = startWall()
}

func (p *profile) into(name string, begin func(*os.File) error) (*os.File, error) {
	f, err := regular.Open(filepath.Join(p.dir, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, err
	}
	if err := begin(f); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, nil
}

func (p *profile) stop() {
	if p.cpu != nil {
		pprof.StopCPUProfile()
		p.note("CPU profile", p.cpu.Close())
		p.cpu = nil
	}
	if p.trace != nil {
		trace.Stop()
		p.note("trace", p.trace.Close())
		p.trace = nil
	}
	if !p.begun {
		return
	}
	p.begun, p.begin = false, nil
	p.whole("time.pprof", p.wall.end)
	p.whole("heap.pprof", func(f io.Writer) error {
		runtime.GC() // a heap profile describes the last collection
		return pprof.WriteHeapProfile(f)
	})
}

func (p *profile) whole(name string, write func(io.Writer) error) {
	f, err := p.into(name, func(f *os.File) error { return write(f) })
	if err == nil {
		err = f.Close()
	}
	p.note(name, err)
}

func (p *profile) note(what string, err error) {
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("%s: %w", what, err))
	}
}

func (p *profile) End(context.Context, loop.Ending) error {
	p.stop()
	return errors.Join(p.errs...)
}
