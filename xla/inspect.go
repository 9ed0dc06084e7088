package xla

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gomlx/compute/shapes"

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

// Cost asks the compiler what a run costs; [ErrUnimplemented] where the plugin does not reckon, as the plugin [Go].
func (p *Program) Cost() (Cost, error) {
	e, err := p.compiled("cost")
	if err != nil {
		return Cost{}, err
	}
	defer p.uses.DoneReading()
	values, err := e.CostAnalysis()
	if err != nil {
		return Cost{}, during(err, "cost of %s", p.name)
	}
	number := func(name string) float64 {
		x, _ := values[name].(float32) // what is 0 is left out
		return float64(x)
	}
	return Cost{number("flops"), number("transcendentals"), number("bytes accessed")}, nil
}

// Memory asks the compiler what memory a run needs; [ErrUnimplemented] where the plugin does not reckon.
func (p *Program) Memory() (Memory, error) {
	e, err := p.compiled("memory")
	if err != nil {
		return Memory{}, err
	}
	defer p.uses.DoneReading()
	m, err := e.Memory()
	if err != nil {
		return Memory{}, during(err, "memory of %s", p.name)
	}
	return m, nil
}

// Signature gives the shapes of the inputs and outputs, as the compiled program has them; those that are replaced and
// those from the host are among them. [ErrUnimplemented] for a backend that is not XLA.
func (p *Program) Signature() (inputs, outputs []shapes.Shape, err error) {
	if _, err := p.compiled("signature"); err != nil {
		return nil, nil, err
	}
	defer p.uses.DoneReading()
	e := p.runs.(*calls).executable
	_, inputs = e.Inputs()
	return inputs, e.Outputs(), nil
}

// compiled is the plugin's form of a program; without an error, p.uses is being read.
func (p *Program) compiled(what string) (*pjrt.Executable, error) {
	if p.uses.Read(context.Background()) != nil {
		return nil, during(errProgramClosed, "%s of %s", what, p.name)
	}
	if runs, ok := p.runs.(*calls); ok {
		return runs.executable.pjrt, nil
	}
	p.uses.DoneReading()
	return nil, fmt.Errorf("xla: %s of %s: %w: this backend does not compile", what, p.name, ErrUnimplemented)
}

// Optimized compiles a program and gives it as XLA has it after its optimizations: HLO as text, in a form that is XLA's
// own and may change with the plugin. [ErrUnimplemented] where the plugin writes none, as the plugin [Go].
func (r *Runtime) Optimized(name, stablehlo string) (string, error) {
	text, err := r.optimized(name, stablehlo)
	if err != nil {
		return "", during(err, "optimize %s", name)
	}
	return text, nil
}

// optimized has XLA dump what it makes, and takes the one file: the plugin itself gives only a protocol buffer, and
// nothing that prints it.
func (r *Runtime) optimized(name, stablehlo string) (text string, err error) {
	dir, err := os.MkdirTemp("", "lazo-hlo-*")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := r.compileText(name, stablehlo, Built{}, map[string]any{"xla_dump_to": dir, "xla_dump_hlo_as_text": true})
	if err != nil {
		return "", err
	}
	if err := p.Close(); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, "*after_optimizations.txt"))
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("%w: the plugin wrote no text", ErrUnimplemented)
	}
	// Programs that the compiler makes on its way are numbered behind the one it was given.
	data, err := os.ReadFile(slices.Min(files))
	return string(data), err
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
