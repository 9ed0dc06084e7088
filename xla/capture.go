package xla

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/lazo-ml/lazo/xla/hlo"
)

// capture is a backend that takes what a graph compiles to: GoMLX's graph keeps its executable to itself, and runs it
// only through tensors.
type capture struct {
	*Runtime
	program *Program
}

func (c *capture) Builder(name string) backends.Builder {
	if on, ok := c.Runtime.Backend.(*client); ok && !c.closed.Load() {
		b := &capturingModule{to: c}
		b.Builder = hlo.New(name, func(m *hlo.Module) (backends.Executable, error) { return c.takeModule(on, m) }).ForCPU(on.plugin.Kind == CPU)
		if mesh := c.program.place.Mesh; len(mesh.Axes) > 0 {
			if err := b.DistributedAutoSharding(mesh.gomlx()); err != nil {
				panic(err) // GoMLX asks for no error here; Compile recovers it
			}
		}
		return b
	}
	if c.program.place.Mesh.Devices() > 1 {
		panic(fmt.Errorf("%v runs on one device", c.plugin))
	}
	return &capturingBuilder{Builder: c.Runtime.Builder(name), to: c}
}

func (c *capture) takeModule(on *client, m *hlo.Module) (backends.Executable, error) {
	p := c.program
	p.block = 1
	if scan := p.built.Scan; scan.Length != 0 {
		if p.built.Block > 1 {
			return nil, fmt.Errorf("a scan of %d times cannot be run in blocks of %d", scan.Length, p.built.Block)
		}
		scanned, err := m.Scan(scan.Length, scan.Carry, scan.Each...)
		if err != nil {
			return nil, err
		}
		m = scanned
	}
	if p.built.Block > 1 && len(p.built.InPlace)+len(p.built.Host) > 0 && !(on.plugin.Kind == CPU && m.Ops[backends.OpTypeConvGeneral] > 0) {
		steps, err := m.Steps(p.built.Block, p.built.Host...)
		if err != nil {
			return nil, err
		}
		p.block, p.counts = p.built.Block, make([]int32, p.built.Block)
		for i := range p.counts {
			p.counts[i] = int32(i + 1)
		}
		p.built.Host = append(slices.Clone(p.built.Host), len(m.Parameters))
		m = steps
	}
	e, err := on.compileFor(m, false, true)
	if err != nil {
		return nil, err
	}
	runs, err := e.newCall(p.built, p.place)
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	switch {
	case on.plugin.Kind != CPU:
		p.way = onCopies
	case p.block > 1 && p.place.Mesh.Devices() == 1 && runs.hostBytes() > handedOver:
		p.way = onShared
	}
	p.runs, p.took, p.text = runs, e.took, e.text
	return e, nil
}

type capturingModule struct {
	*hlo.Builder
	to     *capture
	splits []Split // of the parameters
}

// Parameter places a parameter as the program's placement says.
func (b *capturingModule) Parameter(name string, shape shapes.Shape, sharding *backends.ShardingSpec) (backends.Op, error) {
	if sharding == nil && len(b.to.program.place.Mesh.Axes) > 0 {
		split := b.to.program.place.split(name, shape)
		b.splits = append(b.splits, split)
		sharding = split.gomlx(shape.Rank())
	}
	return b.Builder.Parameter(name, shape, sharding)
}

func (b *capturingModule) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable, error) {
	p := b.to.program
	for output, input := range p.built.InPlace {
		if err := b.InPlace(output, input); err != nil {
			return nil, err
		}
	}
	if len(p.place.Mesh.Axes) > 0 {
		shardings = make([]*backends.ShardingSpec, len(outputs))
		for i, o := range outputs {
			shape, err := b.OpShape(o)
			if err != nil {
				return nil, err
			}
			var split Split
			if input, replaces := p.built.InPlace[i]; replaces {
				split = b.splits[input]
			}
			shardings[i] = split.gomlx(shape.Rank())
		}
	}
	return b.Builder.Compile(outputs, shardings)
}

type capturingBuilder struct {
	backends.Builder
	to *capture
}

func (b *capturingBuilder) Compile(outputs []backends.Op, shardings []*backends.ShardingSpec) (backends.Executable, error) {
	if b.to.program.built.Scan.Length != 0 {
		return nil, fmt.Errorf("%w: %v runs no scan", ErrUnimplemented, b.to.plugin)
	}
	start := time.Now()
	exec, err := b.Builder.Compile(outputs, shardings)
	if err != nil {
		return nil, err
	}
	p := b.to.program
	p.block = 1
	p.runs, p.took = &plain{b.to.Runtime, exec, p.built}, time.Since(start)
	return exec, nil
}
