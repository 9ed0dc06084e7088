package xla

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/aot"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/xla/pjrt"
)

// Cost is what the compiler reckons that one run of a program takes. It is made from the optimized program, before
// anything ran: good to compare programs, not to predict time. XLA counts the body of a loop once, however often it
// runs, so a program of blocks ([Program.Block]) has the cost of about one step.
type Cost struct {
	FLOPs           float64 // floating-point operations
	Transcendentals float64 // exp, log, tanh and their like, which are not among the FLOPs
	BytesAccessed   float64 // read and written by all operations
}

// Memory is the memory in bytes that a program needs on its device. A run takes Arguments + Outputs - Aliased +
// Temporary; Peak is the plugin's own count, from which version 0.0.1 of the CPU's leaves Temporary out. What a plugin
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

// Cost asks the compiler what a run costs; [ErrUnimplemented] where the plugin does not reckon, as the plugin [Go], and
// that of CUDA for a described machine.
func (p *Program) Cost() (Cost, error) {
	values, err := ask(p, "cost", analysed.cost)
	if err != nil {
		return Cost{}, err
	}
	number := func(name string) float64 {
		x, _ := values[name].(float32) // what is 0 is left out
		return float64(x)
	}
	return Cost{number("flops"), number("transcendentals"), number("bytes accessed")}, nil
}

// Memory asks the compiler what memory a run needs; [ErrUnimplemented] where the plugin does not reckon.
func (p *Program) Memory() (Memory, error) { return ask(p, "memory", analysed.memory) }

// Optimized is the program as XLA has it after its passes, for one device: HLO as text, in a form that is XLA's own and
// may change with the plugin. A program whose devices are there is compiled once more for it. [ErrUnimplemented] where
// the plugin writes none, as the plugin [Go].
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
	p, err := r.compileText(name, stablehlo, Built{})
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
