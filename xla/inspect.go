package xla

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/aot"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/xla/cost"
	"github.com/lazo-ml/lazo/xla/pjrt"
)

// Cost is what one run of a program takes on one device. It is counted from the optimized program, before anything ran:
// good to compare programs, not to predict time. Compare costs of one Source: of a loop, a plugin counts the body once,
// however often it runs, and lazo as often as the program says that it runs. How many steps a run of a program of
// blocks ([Program.Block]) makes, the program does not say, so it has the cost of about one step with either.
type Cost struct {
	FLOPs           float64 // floating-point operations
	Transcendentals float64 // exp, log, tanh and their like, which are not among the FLOPs
	BytesAccessed   float64 // read and written by all operations
	// Source says who counted.
	Source CostSource
	// Uncounted are the operations whose FLOPs lazo does not know, which are missing above, and Unknown the loops
	// of which the program does not say how often they run, each of which counts once; with their lines. A plugin
	// tells neither.
	Uncounted, Unknown []string
}

// CostSource says who counted a [Cost].
type CostSource string

const (
	// FromPlugin is what the plugin reckons.
	FromPlugin CostSource = "plugin"
	// FromHLO is what lazo counts from the text of the optimized program ([cost.Count]).
	FromHLO CostSource = "hlo"
)

// Memory is the memory in bytes that a program needs on its device. A run takes Arguments + Outputs - Aliased +
// Temporary; Peak is the plugin's own count, from which that of the CPU leaves Temporary out. What a plugin
// does not tell is 0: that of the CPU counts no Code.
type Memory = pjrt.ProgramMemory

// analysed is what a compiler tells of a program.
type analysed interface {
	cost() (map[string]any, error)
	memory() (Memory, error)
	signature() (inputs, outputs []shapes.Shape, err error)
	optimized() (string, error)
}

var _ analysed = (*calls)(nil)

func (c *calls) cost() (map[string]any, error) { return c.executable.pjrt.CostAnalysis() }
func (c *calls) memory() (Memory, error)       { return c.executable.pjrt.Memory() }

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

// Prepare compiles a program for a described machine ([OpenTopology]) now, which takes up to minutes, and which else
// its Cost, Memory, Optimized or first run would do. The context ends the compiler: the error is its cause then, and
// whoever asks next compiles anew. Any other program is compiled already.
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

// unusable is the error of a program that could not be entered.
func (p *Program) unusable(err error, what string) error {
	if errors.Is(err, gate.ErrClosed) {
		err = errProgramClosed
	}
	return during(err, "%s %s", what, p.name)
}

// Cost is what a run costs, as the plugin reckons, and where it does not, as CUDA's for a described machine, as lazo
// counts from [Program.Optimized], which compiles a program whose devices are there once more; see [Cost].Source. It is
// [ErrUnimplemented], with the cause, where the plugin reckons nothing and writes no optimized program, or one that
// lazo cannot read, and for the plugin [Go].
func (p *Program) Cost() (Cost, error) { return ask(p, "cost", p.cost) }

func (p *Program) cost(of analysed) (Cost, error) {
	values, err := of.cost()
	number := func(name string) float64 {
		x, _ := values[name].(float32) // what is 0 is left out
		return float64(x)
	}
	switch {
	case err == nil && len(values) > 0 && min(number("flops"), number("transcendentals"), number("bytes accessed")) >= 0: // -1 is what XLA does not know
		return Cost{FLOPs: number("flops"), Transcendentals: number("transcendentals"), BytesAccessed: number("bytes accessed"), Source: FromPlugin}, nil
	case err != nil && !errors.Is(WrapError(err), ErrUnimplemented):
		return Cost{}, err
	}
	return p.costFromHLO(of)
}

// costFromHLO is lazo's own count, which is made once.
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
			return Cost{}, fmt.Errorf("%w: the plugin reckons no cost, and the optimized program cannot be counted: %w", ErrUnimplemented, graphs.Inner(err))
		}
		p.fromHLO = &Cost{FLOPs: counts.FLOPs(), Transcendentals: counts.Transcendentals, BytesAccessed: counts.Bytes, Source: FromHLO,
			Uncounted: counts.Uncounted, Unknown: counts.Unknown}
	}
	c := *p.fromHLO
	c.Uncounted, c.Unknown = slices.Clone(c.Uncounted), slices.Clone(c.Unknown)
	return c, nil
}

// Memory asks the compiler what memory a run needs; [ErrUnimplemented] where the plugin does not reckon.
func (p *Program) Memory() (Memory, error) { return ask(p, "memory", analysed.memory) }

// Optimized is the program as XLA has it after its passes, for one device: HLO as text, in a form that is XLA's own and
// may change with the plugin. A program whose devices are there is compiled once more for it. [ErrUnimplemented] where
// the plugin writes none, as the plugin [Go], and for a program divided over several processes ([Across]).
func (p *Program) Optimized() (string, error) { return ask(p, "optimized program", analysed.optimized) }

// Signature gives the shapes of the inputs and outputs, as the compiled program has them; those that are replaced and
// those from the host are among them. [ErrUnimplemented] for a backend that is not XLA.
func (p *Program) Signature() (inputs, outputs []shapes.Shape, err error) {
	_, err = ask(p, "signature", func(of analysed) (struct{}, error) {
		inputs, outputs, err = of.signature()
		return struct{}{}, err
	})
	return inputs, outputs, err
}

// ask asks for something that the compiler tells of the program.
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

// Optimized compiles a program and gives it as XLA has it after its optimizations: see [Program.Optimized].
func (r *Runtime) Optimized(name, stablehlo string) (string, error) {
	text, err := r.optimized(name, stablehlo)
	if err != nil {
		return "", during(err, "optimize %s", name)
	}
	return text, nil
}

func (r *Runtime) optimized(name, stablehlo string) (string, error) {
	if on, ok := r.Backend.(*client); ok && !r.closed.Load() {
		return on.optimized(stablehlo, on.textOptions())
	}
	p, err := r.compileText(context.Background(), name, stablehlo, Built{})
	if err != nil {
		return "", err
	}
	text, err := p.runs.(analysed).optimized()
	return text, errors.Join(err, p.Close())
}

var errNoText = fmt.Errorf("%w: the plugin wrote no text into the folder for temporary files: see whether there is room ($TMPDIR), if it should have", ErrUnimplemented)

// optimized has XLA dump what it makes, and takes the one file: the plugin itself gives only a protocol buffer, and
// nothing that prints it. The program is compiled past the cache.
func (c *client) optimized(text string, options pjrt.CompileOptions) (hlo string, err error) {
	dir, err := os.MkdirTemp("", "lazo-hlo-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	compiled, err := c.client.Compile([]byte(text), aot.Dumping(options, dir))
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

// StableHLOVersion is the version of StableHLO that the plugin reads, "1.13.3"; "" if it tells none.
func (r *Runtime) StableHLOVersion() string {
	c, ok := r.Backend.(*client)
	if !ok {
		return ""
	}
	about, err := c.client.Plugin().Attributes()
	v, _ := about["stablehlo_current_version"].([]int64)
	if err != nil || len(v) != 3 {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2])
}
