package strategies

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/joined"
	"github.com/lazo-ml/lazo/internal/packs"
	"github.com/lazo-ml/lazo/xla"
)

// DataParallel compiles each step to one program for several devices. Each has a part of a batch's examples and the
// whole state, unless [Parallel].Shard shards it.
//
// XLA partitions the graph of the whole batch. Means, gradients, batch normalization statistics and metrics cover all
// examples; random numbers are those of one device. Results agree with [Jit] up to the order of sums.
//
// Several processes ([xla.Across]) form one mesh. Each must run the same program on the same batches, put the same
// values, and fetch sharded values in the same order. Differing values are dist.ErrDisagree.
func DataParallel(on *xla.Runtime, options Parallel) (Strategy, error) {
	if on == nil {
		return nil, errors.New("strategies: data_parallel: the runtime is nil: open one with xla.Open")
	}
	p := &parallel{runtime: on, devices: cmp.Or(options.Devices, on.NumDevices()), model: cmp.Or(options.ModelDevices, 1), pad: options.Pad, rule: options.Shard}
	switch has := on.NumDevices(); {
	case p.devices < 1 || p.devices > has:
		return nil, fmt.Errorf("strategies: data_parallel: asked for %d devices, the runtime has %d: expected from 1 to %d; "+
			"on the CPU, set the number by xla.ClientOption(\"cpu_device_count\", n) when it is opened", p.devices, has, has)
	case p.model < 1 || p.devices%p.model != 0:
		return nil, fmt.Errorf("strategies: data_parallel: asked for groups of %d of the %d devices: expected a number that divides %d; "+
			"the runtime has %d devices, see Parallel.Devices and ModelDevices", p.model, p.devices, p.devices, has)
	case on.Job() != nil && p.devices != has:
		return nil, fmt.Errorf("strategies: data_parallel: asked for %d devices: the runtime has %d over %d processes: expected all of them, since each process has a part",
			p.devices, has, on.Job().Size())
	}
	p.first = firstDevice{on, "data_parallel"}
	p.place = xla.Placement{Split: p.split}
	p.place.Mesh.Axes = []xla.MeshAxis{{Name: DataAxis, Size: p.devices / p.model}}
	if p.model > 1 {
		p.place.Mesh.Axes = append(p.place.Mesh.Axes, xla.MeshAxis{Name: ModelAxis, Size: p.model})
	}
	if p.devices == 1 {
		p.place = xla.Placement{}
	}
	p.from, p.local = on.Local(p.place.Mesh)
	return p, nil
}

// The mesh axes. Batches are sharded over the data axis; [Parallel].Shard may use both.
const (
	DataAxis  = "data"
	ModelAxis = "model"
)

// Parallel are the settings of [DataParallel].
type Parallel struct {
	// Devices is the number of devices, from the first; 0 means all.
	Devices int
	// ModelDevices is the number of devices that work on the same examples, along [ModelAxis], a divisor of Devices;
	// default 1.
	ModelDevices int
	// Pad fills a batch that the devices do not divide by [data.Pad], with a mask that excludes the copies from losses
	// and metrics. Without Pad such a batch is [ErrLeftover]. Other batches get no mask: a step may have two programs.
	Pad bool
	// Shard returns the mesh axes for each axis of a value, by name ("/dense/weights") and shape; nil replicates it
	// ([FullyShard]). An optimizer's packed scalars are always replicated.
	Shard func(name string, shape shapes.Shape) xla.Split
}

// FullyShard returns a rule for [Parallel].Shard that shards values of at least least elements, with their optimizer
// variables, over the data axis, as FSDP and ZeRO (Rajbhandari et al. 2020). It shards the longest axis that devices
// divides, and replicates values without one.
func FullyShard(devices, least int) func(name string, shape shapes.Shape) xla.Split {
	return func(_ string, shape shapes.Shape) xla.Split {
		if shape.Size() < least || shape.IsScalar() {
			return nil
		}
		if devices < 1 {
			return xla.Split{{fmt.Sprintf("of %d devices, as given to FullyShard: expected at least 1", devices)}}
		}
		longest := -1
		for i, n := range shape.Dimensions {
			if n%devices == 0 && n > 0 && (longest < 0 || n > shape.Dimensions[longest]) {
				longest = i
			}
		}
		if longest < 0 {
			return nil
		}
		split := make(xla.Split, longest+1)
		split[longest] = []string{DataAxis}
		return split
	}
}

// ErrLeftover reports that the devices do not divide a batch evenly.
var ErrLeftover = errors.New("the examples cannot be divided evenly over the devices")

type parallel struct {
	runtime *xla.Runtime
	first   firstDevice
	devices int
	from    int // first of this process
	local   int
	model   int
	pad     bool
	rule    func(name string, shape shapes.Shape) xla.Split
	place   xla.Placement
}

func (p *parallel) String() string        { return "data_parallel" }
func (p *parallel) Runtime() *xla.Runtime { return p.runtime }
func (p *parallel) NumDevices() int       { return p.devices }

func (p *parallel) split(parameter string, shape shapes.Shape) xla.Split {
	switch {
	case p.devices == 1:
		return nil
	case strings.HasPrefix(parameter, batchPrefix):
		return xla.Split{{DataAxis}}
	case p.rule != nil && !packs.Is(parameter):
		return p.rule(parameter, shape)
	}
	return nil
}

func (p *parallel) Compile(s Step) (Program, error) { return compile(p, s, p.place) }

type divided struct {
	parts []compute.Buffer
	split xla.Split
	shape shapes.Shape // unknown for outputs
	name  string
}

var _ compute.Buffer = (*divided)(nil)

func (v *divided) Finalize() error {
	var errs []error
	for _, part := range v.parts {
		errs = append(errs, part.Finalize())
	}
	return errors.Join(errs...)
}

// errDivided refuses GoMLX's direct access.
var errDivided = errors.New("strategies: data_parallel: the value is divided over several devices: use the strategy's Fetch")

func (v *divided) Backend() compute.Backend { return v.parts[0].Backend() }
func (v *divided) Shape() (shapes.Shape, error) {
	if !v.shape.Ok() {
		return v.shape, errDivided
	}
	return v.shape, nil
}
func (v *divided) DeviceNum() (compute.DeviceNum, error)                  { return 0, errDivided }
func (v *divided) ToFlatData(any) error                                   { return errDivided }
func (v *divided) Data() (any, error)                                     { return nil, errDivided }
func (v *divided) CopyToDevice(compute.DeviceNum) (compute.Buffer, error) { return nil, errDivided }

func partOf(b compute.Buffer, device int) compute.Buffer {
	if v, ok := b.(*divided); ok {
		return v.parts[device]
	}
	return b
}

func (p *parallel) Put(name string, t *tensors.Tensor) (compute.Buffer, error) {
	if p.devices == 1 {
		return p.first.Put(name, t)
	}
	v := &divided{shape: t.Shape(), split: p.split(name, t.Shape()), name: name}
	if err := p.put(v, t); err != nil {
		return nil, errors.Join(fmt.Errorf("strategies: data_parallel: move %s %s to the devices: %w", name, v.shape, xla.WrapError(err)), p.Free(v))
	}
	return v, nil
}

func (p *parallel) put(v *divided, t *tensors.Tensor) error {
	shape, err := p.place.Mesh.Part(v.shape, v.split)
	if err != nil {
		return err
	}
	if err := p.same(t); err != nil {
		return err
	}
	for d := range p.local {
		if p.runtime.Topology() != "" { // no numbers on a described machine
			b, err := p.runtime.Abstract(compute.DeviceNum(d), shape)
			if err != nil {
				return err
			}
			v.parts = append(v.parts, b)
			continue
		}
		part := t
		if !shape.Equal(v.shape) {
			if part, err = cut(t, shape, p.place.Mesh.Start(p.from+d, shape, v.split)); err != nil {
				return err
			}
		}
		b, err := p.send(d, part)
		if err != nil {
			return err
		}
		v.parts = append(v.parts, b)
	}
	return t.FinalizeAll()
}

func (p *parallel) same(t *tensors.Tensor) error {
	job := p.runtime.Job()
	if job == nil {
		return nil
	}
	var sum int64
	if err := t.ConstBytes(func(data []byte) { sum = int64(crc32.Checksum(data, castagnoli)) }); err != nil {
		return err
	}
	same, err := job.EachSame("a value that is put", sum)
	if err != nil {
		return err
	}
	if !same[0] {
		return fmt.Errorf("%w: its values differ between processes: give all processes the same seed and the same initial values", joined.ErrDisagree)
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (p *parallel) Fetch(b compute.Buffer) (*tensors.Tensor, error) {
	v, ok := b.(*divided)
	if !ok || len(v.split) == 0 || p.runtime.Topology() != "" {
		return p.first.Fetch(partOf(b, 0))
	}
	whole := tensors.FromShape(v.shape)
	parts, err := p.fetchParts(v)
	if err != nil {
		return nil, err
	}
	for d, part := range parts {
		if err := paste(whole, part, p.place.Mesh.Start(d, part.Shape(), v.split)); err != nil {
			return nil, fmt.Errorf("strategies: data_parallel: fetch %s: %w", v.shape, err)
		}
	}
	return whole, nil
}

// All processes must call it together.
func (p *parallel) fetchParts(v *divided) (parts []*tensors.Tensor, err error) {
	for _, b := range v.parts {
		part, err := p.first.Fetch(b)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	job := p.runtime.Job()
	if job == nil {
		return parts, nil
	}
	// A hash of the value first: parts of two values of one shape would match.
	which := fnv.New64a()
	fmt.Fprint(which, v.name, v.shape)
	own := which.Sum(nil)
	start := len(own)
	for _, part := range parts {
		if err := part.ConstBytes(func(data []byte) { own = append(own, data...) }); err != nil {
			return nil, err
		}
	}
	all, err := job.AllGather(own)
	if err != nil {
		return nil, fmt.Errorf("strategies: data_parallel: fetch %s, of which each process has a part: %w", v.shape, err)
	}
	shape := parts[0].Shape()
	parts = nil
	for rank, bytes := range all {
		if string(bytes[:min(start, len(bytes))]) != string(own[:start]) {
			return nil, fmt.Errorf("strategies: data_parallel: fetch %s %s: %w: rank %d fetches another value", v.name, v.shape, joined.ErrDisagree, rank)
		}
		if bytes = bytes[start:]; len(bytes) != len(own)-start {
			return nil, fmt.Errorf("strategies: data_parallel: fetch %s: %w: rank %d fetches a part of %d bytes, expected %d", v.shape, joined.ErrDisagree, rank, len(bytes), len(own)-start)
		}
		for len(bytes) > 0 {
			part := tensors.FromShape(shape)
			if err := part.MutableBytes(func(data []byte) { bytes = bytes[copy(data, bytes):] }); err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
	}
	return parts, nil
}

// A shared part belongs to its first device's process.
func (p *parallel) Parts(b compute.Buffer) (parts []Part, cut bool) {
	v, ok := b.(*divided)
	if !ok || len(v.split) == 0 || p.runtime.Job() == nil {
		return nil, false
	}
	shape, err := p.place.Mesh.Part(v.shape, v.split)
	if err != nil {
		return nil, false
	}
	first := map[string]int{}
	for d := range p.devices {
		start := p.place.Mesh.Start(d, shape, v.split)
		if _, seen := first[fmt.Sprint(start)]; !seen {
			first[fmt.Sprint(start)] = d
		}
	}
	for i, buffer := range v.parts {
		start := p.place.Mesh.Start(p.from+i, shape, v.split)
		if first[fmt.Sprint(start)] == p.from+i {
			parts = append(parts, Part{Start: start, Shape: shape, Buffer: buffer})
		}
	}
	return parts, true
}

func (p *parallel) FetchInto(b compute.Buffer, memory []byte) error {
	if v, ok := b.(*divided); !ok || len(v.split) == 0 || p.runtime.Topology() != "" {
		return p.first.FetchInto(partOf(b, 0), memory)
	}
	whole, err := p.Fetch(b)
	if err != nil {
		return err
	}
	defer whole.FinalizeLocal()
	n := 0
	err = whole.ConstBytes(func(data []byte) {
		if n = len(data); n == len(memory) {
			copy(memory, data)
		}
	})
	if err == nil && n != len(memory) {
		err = fmt.Errorf("expected memory for %d bytes, got %d", n, len(memory))
	}
	if err != nil {
		return fmt.Errorf("strategies: data_parallel: fetch %s: %w", whole.Shape(), err)
	}
	return nil
}

func (p *parallel) Free(buffers ...compute.Buffer) error {
	var first error
	for _, b := range buffers {
		parts := []compute.Buffer{b}
		if v, ok := b.(*divided); ok {
			parts = v.parts
		}
		if err := p.first.Free(parts...); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (p *parallel) send(device int, t *tensors.Tensor) (compute.Buffer, error) {
	var b compute.Buffer
	var err error
	flatErr := t.ConstFlatData(func(flat any) {
		b, err = p.runtime.BufferFromFlatData(compute.DeviceNum(device), flat, t.Shape())
	})
	return b, errors.Join(flatErr, err)
}

func (p *parallel) Batch(b data.Batch) (data.Batch, error) {
	if err := counted(&b); err != nil {
		return b, ofBatch(err)
	}
	if b.Partial() {
		return b, ofBatch(p.takesPart(b.Part))
	}
	b, err := p.dividedBatch(b)
	return b, ofBatch(err)
}

func (p *parallel) takesPart(part data.Part) error {
	rank, of, ok := p.ownPart()
	switch {
	case p.local == p.devices:
		return fmt.Errorf("the batch is part %d of %d: expected a whole one: this process has all %d devices", part.Rank, part.Of, p.devices)
	case !ok || of == 1:
		return fmt.Errorf("the batch is part %d of %d: expected a whole one: groups of %d devices work on the same examples, and this process has the devices %d to %d",
			part.Rank, part.Of, p.model, p.from, p.from+p.local-1)
	case part.Rank != rank || part.Of != of:
		return fmt.Errorf("the batch is part %d of %d: expected a whole one, or part %d of %d, as by data.Share(job.Rank(), job.Size())",
			part.Rank, part.Of, rank, of)
	}
	return nil
}

// ownPart returns this process's part. ok is false if it has partial groups.
func (p *parallel) ownPart() (rank, of int, ok bool) {
	each := max(p.local, p.model) // devices per part
	if p.local%p.model != 0 && p.model%p.local != 0 {
		return 0, 0, false
	}
	return p.from / each, p.devices / each, true
}
