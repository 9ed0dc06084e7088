package strategies

import (
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"reflect"
	"sync"
	"time"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/blocks"
	"github.com/lazo-ml/lazo/internal/joined"
	"github.com/lazo-ml/lazo/xla"
)

// Inputs are in graph order; outputs are the changed state, then the rest.
type program struct {
	on       Strategy
	name     string
	mesh     int
	from     int // first of this process
	devices  int
	compiled *xla.Program
	batch    []field
	state    int
	inputs   []int // state index per input, or fromHost
	changed  []bool

	mu   sync.Mutex
	idle []*staging // last in, first out: a single user reuses one
}

type staging struct {
	buffers []compute.Buffer
	host    []any
	// Runs alternate: one is prepared while the other executes.
	runs [2]stagedRun
	next int
}

func (p *program) take() *staging {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return &staging{buffers: make([]compute.Buffer, p.devices*len(p.inputs))}
	}
	s := p.idle[last]
	p.idle = p.idle[:last]
	return s
}

func (p *program) giveBack(s *staging) {
	clear(s.host)
	p.mu.Lock()
	p.idle = append(p.idle, s)
	p.mu.Unlock()
}

const fromHost = -1

func small(batch []Input, state []Slot) bool {
	examples, values := 0, 0
	for _, in := range batch {
		examples += in.Shape.Size()
	}
	for _, slot := range state {
		if slot.Data {
			continue
		}
		values += slot.Parameter.Shape().Size()
	}
	return examples <= blocks.BatchNumbers && values <= blocks.StateNumbers
}

func compile(on Strategy, s Step, place xla.Placement) (Program, error) {
	p := &program{on: on, name: s.Name, mesh: place.Mesh.Devices()}
	p.from, p.devices = on.Runtime().Local(place.Mesh)
	for _, in := range s.Batch {
		f, err := newField(in, place)
		if err != nil {
			return nil, fmt.Errorf("strategies: %v: %s: %w", on, s.Name, err)
		}
		p.batch = append(p.batch, f)
	}
	var err error
	if p.compiled, err = on.Runtime().CompileOver(place, s.Name, func(g *graph.Graph) xla.Built { return p.build(g, s) }); err != nil {
		return nil, err
	}
	return p, nil
}

func newField(in Input, place xla.Placement) (field, error) {
	n := place.Mesh.Devices()
	f := field{Input: in, each: in.Shape, starts: make([]int, n)}
	if n == 1 {
		return f, nil
	}
	if in.Shape.Rank() == 0 {
		return f, fmt.Errorf("%s of the batch is a scalar: it has no axis of examples to divide over %d devices: give it a number for each example", in.Name, n)
	}
	split := place.Split(batchPrefix+in.Name, in.Shape)
	part, err := place.Mesh.Part(in.Shape, split)
	if errors.Is(err, xla.ErrUneven) {
		err = fmt.Errorf("%w: %w", ErrLeftover, err)
	}
	if err != nil {
		return f, fmt.Errorf("%s of the batch: %w", in.Name, err)
	}
	f.each = part
	for d := range f.starts {
		f.starts[d] = place.Mesh.Start(d, part, split)[0] * in.Shape.Size() / max(in.Shape.Dimensions[0], 1)
	}
	return f, nil
}

func (p *program) build(g *graph.Graph, s Step) xla.Built {
	batch, built := s.Graph(g)
	p.inputs = make([]int, g.NumParameters())
	p.state, p.changed = len(built.State), make([]bool, len(built.State))
	out := xla.Built{InPlace: map[int]int{}, Block: s.Block}
	if built.Alone || !small(s.Batch, built.State) {
		out.Block = 1
	}
	for _, n := range batch {
		p.inputs[n.GetParameterHandle()] = fromHost
		out.Host = append(out.Host, int(n.GetParameterHandle()))
	}
	for i, slot := range built.State {
		input := int(slot.Parameter.GetParameterHandle())
		p.inputs[input] = i
		if slot.New == nil {
			continue
		}
		out.InPlace[len(out.Outputs)] = input
		out.Outputs = append(out.Outputs, slot.New)
		p.changed[i] = true
	}
	for _, at := range built.Read {
		out.Read = append(out.Read, len(out.Outputs)+at)
	}
	out.Outputs = append(out.Outputs, built.Outputs...)
	return out
}

func (p *program) Block() int { return p.compiled.Block() }

func (p *program) Start(state []compute.Buffer, batches []data.Batch) (changed, outputs []compute.Buffer, running Running, err error) {
	if n := len(batches); n < 1 || n > p.Block() {
		return nil, nil, nil, fmt.Errorf("strategies: %v: run %s: %d batches at once: the program takes up to %d", p.on, p.name, n, p.Block())
	}
	for i := range batches {
		if err := p.check(state, batches[i].Fields, batches[i].Part.Of); err != nil {
			return nil, nil, nil, fmt.Errorf("strategies: %v: run %s: %w", p.on, p.name, err)
		}
	}
	s := p.take()
	defer p.giveBack(s)
	r := &s.runs[s.next]
	s.next = 1 - s.next
	r.wait()
	host := s.host[:0]
	if p.Block() > 1 {
		host = r.stack(p.batch, batches, p.Block(), p.from, p.devices)
	} else {
		for d := range p.devices {
			for i, f := range p.batch {
				host = append(host, f.part(p.from, d, batches[0].Fields[i].Array.Flat))
			}
		}
		s.host = host
	}
	n := len(p.inputs)
	for d := range p.devices {
		for i, from := range p.inputs {
			s.buffers[d*n+i] = nil
			if from != fromHost {
				s.buffers[d*n+i] = partOf(state[from], d)
			}
		}
	}
	outputs, started, err := p.compiled.Start(s.buffers, host, len(batches), p.alike(batches)...)
	if err != nil {
		return nil, nil, nil, p.lost(err)
	}
	if started != nil {
		r.running = run{started, p}
	}
	return p.replaced(state, s), p.whole(outputs), r.running, nil
}

var errOtherBatches = fmt.Errorf("%w: their batches for this step differ: give all processes the same data in the same order (the same seed of a shuffle), and each process its part by data.Share, or the whole batch", joined.ErrDisagree)

// alike has checksums to compare between processes; of a part, only of the position.
func (p *program) alike(batches []data.Batch) []joined.Alike {
	if p.on.Runtime().Job() == nil || p.mesh == 1 || len(p.batch) == 0 {
		return nil
	}
	places, deals := fnv.New64a(), fnv.New64a()
	sums := make([]int64, 2+len(p.batch))
	for i := range batches {
		b := &batches[i]
		fmt.Fprintln(places, b.Epoch, wholeAt(b), b.Part.Of)
		if b.Deal != nil {
			fmt.Fprintln(deals, *b.Deal)
		}
		for j := range b.Fields {
			if !b.Partial() {
				sums[2+j] = sums[2+j]*odd + int64(bytesum(b.Fields[j].Array.Flat))
			}
		}
	}
	sums[0], sums[1] = int64(places.Sum64()), int64(deals.Sum64())
	return []joined.Alike{{What: "the next batches", Sums: sums, Parts: func() []joined.Part { return p.parts(&batches[0]) }, Err: errOtherBatches}}
}

// odd makes the combined checksum depend on the order.
const odd = 0x9e3779b1

func (p *program) parts(b *data.Batch) []joined.Part {
	place := fmt.Sprintf("epoch %d, from example %d on", b.Epoch, wholeAt(b))
	if b.Partial() {
		place += fmt.Sprintf(", a part of %d", b.Part.Of)
	}
	deal := "none"
	if d := b.Deal; d != nil {
		deal = fmt.Sprintf("%d examples (content %s) in batches of %d", d.Examples, d.Content, d.Size)
		if d.Remainder {
			deal += " with the remainder"
		}
		if d.Shuffled {
			deal += fmt.Sprintf(", shuffled by the seed %d", d.Seed)
		}
	}
	list := []joined.Part{{Name: "the place of the batch in the data", Is: place}, {Name: "the set and the order of its examples", Is: deal}}
	for i := range p.batch {
		list = append(list, joined.Part{Name: fmt.Sprintf("the values of field %q", p.batch[i].Name)})
	}
	return list
}

func wholeAt(b *data.Batch) int {
	if dims := b.Fields[0].Array.Dims; b.Partial() && len(dims) > 0 {
		return b.At - b.Part.Rank*dims[0]
	}
	return b.At
}

func bytesum(flat any) uint32 {
	v := reflect.ValueOf(flat)
	if v.Kind() != reflect.Slice || v.Len() == 0 {
		return 0
	}
	return crc32.Checksum(unsafe.Slice((*byte)(v.UnsafePointer()), v.Len()*int(v.Type().Elem().Size())), castagnoli)
}

func (p *program) check(state []compute.Buffer, batch []data.Field, of int) error {
	if len(state) != p.state || len(batch) != len(p.batch) {
		return fmt.Errorf("expected %d values of state and %d fields of a batch, got %d and %d", p.state, len(p.batch), len(state), len(batch))
	}
	for i := range batch {
		if p.batch[i].Of != of {
			return fmt.Errorf("the batch is one of %d parts, expected one of %d (0 is a whole batch)", of, p.batch[i].Of)
		}
		if err := p.batch[i].accept(batch[i].Array); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) replaced(state []compute.Buffer, s *staging) []compute.Buffer {
	changed := make([]compute.Buffer, p.state)
	for i, from := range p.inputs {
		if from == fromHost || !p.changed[from] {
			continue
		}
		if p.mesh == 1 {
			changed[from] = s.buffers[i]
		} else {
			changed[from] = state[from] // same part buffers, new contents
		}
	}
	return changed
}

func (p *program) whole(outputs []compute.Buffer) []compute.Buffer {
	if p.mesh == 1 {
		return outputs
	}
	n := len(outputs) / p.devices
	values := make([]compute.Buffer, n)
	for i := range values {
		v := &divided{}
		for d := range p.devices {
			v.parts = append(v.parts, outputs[d*n+i])
		}
		values[i] = v
	}
	return values
}

type run struct {
	*xla.Running
	of *program
}

func (r run) Wait() error { return r.of.lost(r.Running.Wait()) }

func (p *program) lost(err error) error {
	if errors.Is(err, xla.ErrInputsLost) {
		return fmt.Errorf("strategies: %v: %w: %w", p.on, ErrStateLost, err)
	}
	return err
}

func (p *program) Rebuilds() bool { return false }

func (p *program) StableHLO() string { return p.compiled.StableHLO() }

func (p *program) CompileTime() time.Duration { return p.compiled.CompileTime() }

func (p *program) Cost() (xla.Cost, error) { return p.compiled.Cost() }

func (p *program) Memory() (xla.Memory, error) { return p.compiled.Memory() }

func (p *program) Compiled() *xla.Program { return p.compiled }

func (p *program) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.idle {
		for i := range s.runs {
			s.runs[i].wait()
		}
	}
	return p.compiled.Close()
}
