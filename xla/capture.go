package xla

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/hlo"
)

type capture struct {
	*Runtime
	program *Program
	lower   *hlo.Builder // nil before Builder, and for other plugins
}

// BeginTrace is [hlo.Builder.BeginTrace].
func (c *capture) BeginTrace(whole bool) { c.traced(func(b *hlo.Builder) { b.BeginTrace(whole) }) }
func (c *capture) TraceBody()            { c.traced((*hlo.Builder).TraceBody) }
func (c *capture) EndTrace()             { c.traced((*hlo.Builder).EndTrace) }

func (c *capture) traced(do func(*hlo.Builder)) {
	if c.lower != nil {
		do(c.lower)
	}
}

func (c *capture) Builder(name string) compute.Builder {
	on, ok := c.Runtime.Backend.(machine)
	if !ok || c.closed.Load() {
		if c.program.place.Mesh.Devices() > 1 {
			panic(fmt.Errorf("%v runs on one device", c.plugin)) // Compile recovers it
		}
		return c.Runtime.Builder(name)
	}
	c.lower = on.builder(name, func(m *hlo.Module) (compute.Executable, error) { return c.takeModule(on, m) })
	return c.program.builder(c.lower)
}

func (p *Program) builder(b *hlo.Builder) compute.Builder {
	if len(p.place.Mesh.Axes) > 0 {
		if err := b.DistributedAutoSharding(p.place.Mesh.gomlx()); err != nil {
			panic(err)
		}
	}
	return &placedBuilder{b, &placed{Function: b.Main().(*hlo.Function), builder: b, program: p}}
}

func (c *capture) takeModule(on machine, m *hlo.Module) (compute.Executable, error) {
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
	if d, ok := on.(*described); ok && d.planned != "" {
		p.built.Block = 1 // a plan has a single step
	}
	if p.built.Block > 1 && len(p.built.InPlace)+len(p.built.Host) > 0 && !(on.kind() == CPU && m.Ops[compute.OpTypeConvGeneral] > 0) {
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
	return on.prepare(p, m)
}

func (c *client) prepare(p *Program, m *hlo.Module) (compute.Executable, error) {
	e, err := c.compileFor(m, false, true)
	if err != nil {
		return nil, err
	}
	runs, err := e.newCalls(p.built, p.place)
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	switch {
	case c.plugin.Kind != CPU:
		p.mode = goOnCopied
	case p.block > 1 && p.place.Mesh.Devices() == 1 && runs.hostBytes() > goOnBytes:
		p.mode = goOnShared
	}
	if c.exchanges(m) {
		p.across = c.across
	}
	p.runs, p.took, p.text, p.devices = runs, e.took, e.text, runs.devices
	return e, nil
}

type placedBuilder struct {
	*hlo.Builder
	main *placed
}

func (b *placedBuilder) Main() compute.Function { return b.main }

type placed struct {
	*hlo.Function
	builder *hlo.Builder
	program *Program
	splits  []Split
}

func (f *placed) Parameter(name string, shape shapes.Shape, sharding *compute.ShardingSpec) (compute.Value, error) {
	if sharding == nil && len(f.program.place.Mesh.Axes) > 0 {
		split := f.program.place.split(name, shape)
		f.splits = append(f.splits, split)
		sharding = split.gomlx(shape.Rank())
	}
	return f.Function.Parameter(name, shape, sharding)
}

func (f *placed) Return(outputs []compute.Value, shardings []*compute.ShardingSpec) error {
	p := f.program
	for output, input := range p.built.InPlace {
		if err := f.builder.InPlace(output, input); err != nil {
			return err
		}
	}
	if len(p.place.Mesh.Axes) > 0 {
		shardings = make([]*compute.ShardingSpec, len(outputs))
		for i, o := range outputs {
			shape, err := f.Shape(o)
			if err != nil {
				return err
			}
			var split Split
			if input, replaces := p.built.InPlace[i]; replaces {
				split = f.splits[input]
			}
			shardings[i] = split.gomlx(shape.Rank())
		}
	}
	return f.Function.Return(outputs, shardings)
}
