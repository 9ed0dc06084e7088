package xla

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/aot"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/xla/cost"
)

// CompileTime returns the plugin's compile time: 0 before a described machine compiles, the original for a cached
// report.
func (p *Program) CompileTime() time.Duration {
	if d, ok := p.runs.(*describedProgram); ok {
		return d.took()
	}
	return p.took
}

var _ analysed = (*calls)(nil)

func (c *calls) cost() (map[string]any, error) { return c.executable.pjrt.CostAnalysis() }

func (c *calls) memory() (Memory, error) {
	m, err := c.executable.pjrt.Memory()
	return Memory(m), err
}

func (c *calls) signature() (inputs, outputs []shapes.Shape, err error) {
	_, inputs = c.executable.Inputs()
	return inputs, c.executable.Outputs(), nil
}

func (c *calls) optimized() (string, error) {
	if c.executable.of.exchanges(c.executable.module) {
		return "", fmt.Errorf("%w: the program is divided over several processes, and none has what XLA made of the whole: open the plugin with as many devices in one process", ErrUnimplemented)
	}
	return c.executable.of.optimized(c.executable.text, c.executable.options)
}

// Prepare compiles a described machine's program ([OpenTopology]), as its first use would. If ctx ends, the error is
// its cause, and the next call starts again. Other programs are compiled already.
func (p *Program) Prepare(ctx context.Context) error {
	if err := p.uses.Read(ctx); err != nil {
		return p.unusable(err, "prepare")
	}
	defer p.uses.DoneReading()
	if of, ok := p.runs.(*describedProgram); ok {
		if _, err := of.compiled(ctx); err != nil {
			return during(err, "prepare %s", p.name)
		}
	}
	return nil
}

func (p *Program) unusable(err error, what string) error {
	if errors.Is(err, gate.ErrClosed) {
		err = errProgramClosed
	}
	return during(err, "%s %s", what, p.name)
}

// Cost returns a run's cost, from the plugin or else from [Program.Optimized], which compiles again. It is
// [ErrUnimplemented] if neither is available, as for [Go].
func (p *Program) Cost() (Cost, error) { return ask(p, "cost", p.cost) }

func (p *Program) cost(of analysed) (Cost, error) {
	values, err := of.cost()
	number := func(name string) float64 {
		x, _ := values[name].(float32) // XLA omits 0
		return float64(x)
	}
	switch {
	case err == nil && len(values) > 0 && min(number("flops"), number("transcendentals"), number("bytes accessed")) >= 0: // -1 is unknown
		return Cost{FLOPs: number("flops"), Transcendentals: number("transcendentals"), BytesAccessed: number("bytes accessed")}, nil
	case err != nil && !errors.Is(WrapError(err), ErrUnimplemented):
		return Cost{}, err
	}
	return p.costFromHLO(of)
}

func (p *Program) costFromHLO(of analysed) (Cost, error) {
	p.counting.Lock()
	defer p.counting.Unlock()
	if p.fromHLO == nil {
		text, err := of.optimized()
		if err != nil {
			return Cost{}, err
		}
		counts, err := cost.Count(text, nil)
		if err != nil {
			return Cost{}, fmt.Errorf("%w: the plugin does not compute costs, and the optimized program cannot be counted: %w", ErrUnimplemented, graphs.Inner(err))
		}
		p.fromHLO = &Cost{FLOPs: counts.FLOPs(), Transcendentals: counts.Transcendentals, BytesAccessed: counts.Bytes, Counted: true,
			Uncounted: counts.Uncounted, Unknown: counts.Unknown}
	}
	c := *p.fromHLO
	c.Uncounted, c.Unknown = slices.Clone(c.Uncounted), slices.Clone(c.Unknown)
	return c, nil
}

// Memory of a run is [ErrUnimplemented] if unknown.
func (p *Program) Memory() (Memory, error) { return ask(p, "memory", analysed.memory) }

// Optimized returns XLA's optimized HLO for one device as text, which depends on the plugin. It compiles again, except
// on a described machine. It is [ErrUnimplemented] for [Go], plugins that write no text, and programs over several
// processes.
func (p *Program) Optimized() (string, error) { return ask(p, "optimized program", analysed.optimized) }

// Signature returns the shapes of all inputs and outputs, including [Built].Host and InPlace, [ErrUnimplemented]
// without XLA.
func (p *Program) Signature() (inputs, outputs []shapes.Shape, err error) {
	_, err = ask(p, "signature", func(of analysed) (struct{}, error) {
		inputs, outputs, err = of.signature()
		return struct{}{}, err
	})
	return inputs, outputs, err
}

func ask[T any](p *Program, what string, question func(analysed) (T, error)) (said T, err error) {
	if p.uses.Read(context.Background()) != nil {
		return said, during(errProgramClosed, "%s of %s", what, p.name)
	}
	defer p.uses.DoneReading()
	of, ok := p.runs.(analysed)
	if !ok {
		return said, fmt.Errorf("xla: %s of %s: %w: this backend does not compile", what, p.name, ErrUnimplemented)
	}
	if said, err = question(of); err != nil {
		return said, during(err, "%s of %s", what, p.name)
	}
	return said, nil
}

// Optimized compiles StableHLO text: see [Program.Optimized].
func (r *Runtime) Optimized(name, stablehlo string) (string, error) {
	text, err := r.optimized(name, stablehlo)
	if err != nil {
		return "", during(err, "optimize %s", name)
	}
	return text, nil
}

func (r *Runtime) optimized(name, stablehlo string) (string, error) {
	if on, ok := r.Backend.(*pjrtClient); ok && !r.closed.Load() {
		return on.optimized(stablehlo, on.textOptions())
	}
	p, err := r.compileText(context.Background(), name, stablehlo, Built{})
	if err != nil {
		return "", err
	}
	text, err := p.runs.(analysed).optimized()
	return text, errors.Join(err, p.Close())
}

// XLA dumps text; the plugin returns only a protocol buffer.
func (c *pjrtClient) optimized(text string, options pjrt.CompileOptions) (hlo string, err error) {
	dir, err := os.MkdirTemp("", "lazo-hlo-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	compiled, err := c.compileNow(text, aot.Dumping(options, dir))
	if err != nil {
		return "", err
	}
	if err := compiled.Close(); err != nil {
		return "", err
	}
	if hlo, err = aot.Dumped(dir); err == nil && hlo == "" {
		err = errNoText
	}
	return hlo, err
}
