package xla

import (
	"fmt"
	"slices"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/hlo"
)

// Compile builds a graph and compiles it for the first device. A panic's error names the caller's line in build. A
// compilation cannot be cancelled; for described machines see [CompileTimeout].
func (r *Runtime) Compile(name string, build func(g *graph.Graph) Built) (*Program, error) {
	return r.CompileOver(Placement{}, name, build)
}

// CompileOver is [Runtime.Compile] for a mesh. The graph has whole arrays; XLA shards the work. Inputs and outputs
// are lists of parts, device after device. Over several processes ([Across]) each handles its parts of a mesh of all
// devices ([Runtime.Local]).
func (r *Runtime) CompileOver(place Placement, name string, build func(g *graph.Graph) Built) (*Program, error) {
	if r.closed.Load() {
		return nil, during(errClosed, "compile %s", name)
	}
	if err := place.Mesh.check(r.NumDevices()); err != nil {
		return nil, during(err, "compile %s", name)
	}
	if n := place.Mesh.Devices(); r.Job() != nil && n > 1 && n != r.NumDevices() {
		return nil, fmt.Errorf("xla: compile %s: the mesh has %d devices: across %d processes expected all %d, or 1 for a program that each runs alone",
			name, n, r.Job().Size(), r.NumDevices())
	}
	p := &Program{name: name, place: place, devices: place.Mesh.Devices()}
	c := &capture{Runtime: r, program: p}
	err := graphs.Catch(func() {
		g := graph.NewGraph(c, name)
		p.built = build(g)
		if err := p.compile(c, g); err != nil {
			panic(err)
		}
	})
	if err != nil {
		return nil, during(err, "compile %s", name)
	}
	return p, nil
}

func (p *Program) compile(c *capture, g *graph.Graph) error {
	_, ours := c.Runtime.Backend.(xlaMachine)
	if !ours && p.built.Scan.Length != 0 {
		return fmt.Errorf("%w: %v runs no scan", ErrUnimplemented, c.plugin)
	}
	start := time.Now()
	if err := g.Compile(p.built.Outputs...); err != nil || ours {
		return err
	}
	p.block, p.runs, p.took = 1, &plain{on: c.Runtime, exec: g.Executable(), built: p.built}, time.Since(start)
	return nil
}

type xlaMachine interface {
	compute.Backend
	kind() string
	builder(name string, compile func(*hlo.Module) (compute.Executable, error)) *hlo.Builder
	prepare(p *Program, m *hlo.Module) (compute.Executable, error)
}

var _ xlaMachine = (*pjrtClient)(nil)

var _ xlaMachine = (*described)(nil)

type capture struct {
	*Runtime
	program *Program
	lower   *hlo.Builder // nil before Builder, and for other plugins
}

func (c *capture) BeginTrace(whole bool) { c.traced(func(b *hlo.Builder) { b.BeginTrace(whole) }) }
func (c *capture) TraceBody()            { c.traced((*hlo.Builder).TraceBody) }
func (c *capture) EndTrace()             { c.traced((*hlo.Builder).EndTrace) }

func (c *capture) traced(do func(*hlo.Builder)) {
	if c.lower != nil {
		do(c.lower)
	}
}

func (c *capture) Builder(name string) compute.Builder {
	on, ok := c.Runtime.Backend.(xlaMachine)
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
	return &placedBuilder{b, &placedMain{Function: b.Main().(*hlo.Function), builder: b, program: p}}
}

func (c *capture) takeModule(on xlaMachine, m *hlo.Module) (compute.Executable, error) {
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

type placedBuilder struct {
	*hlo.Builder
	main *placedMain
}

func (b *placedBuilder) Main() compute.Function { return b.main }

type placedMain struct {
	*hlo.Function
	builder *hlo.Builder
	program *Program
	splits  []Split
}

func (f *placedMain) Parameter(name string, shape shapes.Shape, sharding *compute.ShardingSpec) (compute.Value, error) {
	if sharding == nil && len(f.program.place.Mesh.Axes) > 0 {
		split := f.program.place.split(name, shape)
		f.splits = append(f.splits, split)
		sharding = split.gomlx(shape.Rank())
	}
	return f.Function.Parameter(name, shape, sharding)
}

func (f *placedMain) Return(outputs []compute.Value, shardings []*compute.ShardingSpec) error {
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
