package callbacks

import (
	"compress/gzip"
	"encoding/binary"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

type wall struct {
	root    string
	began   time.Time
	counts  map[[32]uintptr]int64
	records []runtime.StackRecord
	stop    chan struct{}
	stopped chan struct{}
}

const wallPeriod = 10 * time.Millisecond

func startWall() *wall {
	pcs := make([]uintptr, 1000)
	all := framesOf(pcs[:runtime.Callers(1, pcs)])
	w := &wall{root: all[len(all)-1].Function, began: time.Now(), counts: map[[32]uintptr]int64{},
		records: make([]runtime.StackRecord, 64), stop: make(chan struct{}), stopped: make(chan struct{})}
	go func() {
		defer close(w.stopped)
		tick := time.NewTicker(wallPeriod)
		defer tick.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-tick.C:
				w.look()
			}
		}
	}()
	return w
}

func (w *wall) look() {
	n, ok := runtime.GoroutineProfile(w.records)
	if !ok {
		w.records = make([]runtime.StackRecord, 2*n)
		return
	}
	for _, r := range w.records[:n] {
		w.counts[r.Stack0]++
	}
}

func framesOf(pcs []uintptr) (all []runtime.Frame) {
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		if f.Function != "runtime.goexit" {
			all = append(all, f)
		}
		if !more {
			return all
		}
	}
}

var waiting = []string{
	reflect.TypeFor[loop.Report]().PkgPath() + ".Shield", reflect.TypeFor[loop.Report]().PkgPath() + ".(*source[...]).wait",
	reflect.TypeFor[wall]().PkgPath() + ".(*wall)",
}

func (w *wall) isOf(frames []runtime.Frame, whole bool) bool {
	if len(frames) == 0 || whole && frames[len(frames)-1].Function != w.root {
		return false
	}
	for _, f := range frames {
		if slices.ContainsFunc(waiting, func(name string) bool { return strings.HasPrefix(f.Function, name) }) {
			return false
		}
		if !strings.HasPrefix(f.Function, "runtime.") {
			break
		}
	}
	return true
}

func (w *wall) end(to io.Writer) error {
	close(w.stop)
	<-w.stopped
	p := proto{ids: map[any]uint64{"": 0}, strings: []string{""}}
	p.valueType(1, "samples", "count")
	p.valueType(1, "time", "nanoseconds")
	for stack, n := range w.counts {
		depth := 0
		for depth < len(stack) && stack[depth] != 0 {
			depth++
		}
		frames := framesOf(stack[:depth])
		if !w.isOf(frames, depth < len(stack)) {
			continue
		}
		var sample proto
		for _, f := range frames {
			sample.number(1, p.location(f))
		}
		sample.number(2, uint64(n))
		sample.number(2, uint64(n*int64(wallPeriod)))
		p.message(2, sample)
	}
	p.number(9, uint64(w.began.UnixNano()))
	p.number(10, uint64(time.Since(w.began)))
	p.valueType(11, "time", "nanoseconds")
	p.number(12, uint64(wallPeriod))
	for _, s := range p.strings {
		p.bytes(6, s)
	}
	zipped := gzip.NewWriter(to)
	if _, err := zipped.Write(p.out); err != nil {
		return err
	}
	return zipped.Close()
}

type proto struct {
	out     []byte
	ids     map[any]uint64
	strings []string
}

func (p *proto) number(field int, x uint64) {
	p.out = binary.AppendUvarint(p.out, uint64(field)<<3)
	p.out = binary.AppendUvarint(p.out, x)
}

func (p *proto) bytes(field int, s string) {
	p.out = binary.AppendUvarint(p.out, uint64(field)<<3|2)
	p.out = binary.AppendUvarint(p.out, uint64(len(s)))
	p.out = append(p.out, s...)
}

func (p *proto) message(field int, m proto) { p.bytes(field, string(m.out)) }

func (p *proto) text(s string) uint64 {
	id, ok := p.ids[s]
	if !ok {
		id = uint64(len(p.strings))
		p.ids[s], p.strings = id, append(p.strings, s)
	}
	return id
}

func (p *proto) valueType(field int, kind, unit string) {
	var m proto
	m.number(1, p.text(kind))
	m.number(2, p.text(unit))
	p.message(field, m)
}

func (p *proto) location(f runtime.Frame) uint64 {
	type function struct{ name, file string }
	type line struct {
		of   function
		line int
	}
	of := function{f.Function, f.File}
	at := line{of, f.Line}
	if id, ok := p.ids[at]; ok {
		return id
	}
	if _, ok := p.ids[of]; !ok {
		id := uint64(len(p.ids)) // must not be 0
		p.ids[of] = id
		var m proto
		m.number(1, id)
		m.number(2, p.text(of.name))
		m.number(4, p.text(of.file))
		p.message(5, m)
	}
	var l, m proto
	l.number(1, p.ids[of])
	l.number(2, uint64(f.Line))
	id := uint64(len(p.ids))
	p.ids[at] = id
	m.number(1, id)
	m.message(4, l)
	p.message(4, m)
	return id
}
