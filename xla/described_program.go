package xla

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/aot"
	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/planned"
)

// It compiles, for up to minutes, when it is inspected or runs as a step.
type describedProgram struct {
	of      *described
	module  *hlo.Module // without memory of large constants; nil for a text
	name    string
	text    string
	options pjrt.CompileOptions
	built   Built

	once   gate.Gate
	mu     sync.Mutex
	report *aot.Report
	err    error // of the compilation, which is not repeated
}

var (
	_ runner   = (*describedProgram)(nil)
	_ analysed = (*describedProgram)(nil)
)

func (d *described) Builder(name string) compute.Builder {
	return d.builder(name, func(m *hlo.Module) (compute.Executable, error) {
		p, err := d.program(m)
		if err != nil {
			return nil, err
		}
		return describedExecutable{p}, nil
	})
}

func (d *described) program(m *hlo.Module) (*describedProgram, error) {
	if d.closed.Load() {
		return nil, errClosed
	}
	options := baseOptions(d.plugin.Kind)
	if err := forDevices(&options, m, d.NumDevices(), func(n compute.DeviceNum) (int, error) {
		if err := d.device(n); err != nil {
			return 0, err
		}
		return d.about.Devices[n].ID, nil
	}); err != nil {
		return nil, err
	}
	return &describedProgram{of: d, module: withoutConstants(m), name: m.Name, text: m.Text(), options: options}, nil
}

func (d *described) prepare(p *Program, m *hlo.Module) (compute.Executable, error) {
	made, err := d.program(m)
	if err != nil {
		return nil, err
	}
	made.built = p.built
	p.runs, p.text = made, made.text
	return describedExecutable{made}, nil
}

func (p *describedProgram) compiled(ctx context.Context) (*aot.Report, error) {
	if err := p.once.Change(ctx); err != nil {
		return nil, err
	}
	defer p.once.DoneChanging()
	if p.report != nil || p.err != nil {
		return p.report, p.err
	}
	if p.of.closed.Load() {
		return nil, errClosed
	}
	report, from, err := p.of.compile(ctx, p.text, p.options)
	switch {
	case p.of.closed.Load():
		return nil, errClosed
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil && p.module != nil:
		err = located(p.module, err)
	}
	p.mu.Lock()
	p.report, p.err = report, err
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	bytes := int64(0)
	if m := report.Memory; m != nil {
		bytes = m.Arguments + m.Outputs - m.Aliased + m.Temporary
	}
	logCompiled(p.of.log, p.name, from, report.Took, bytes)
	return report, nil
}

func (d *described) compile(ctx context.Context, text string, options pjrt.CompileOptions) (*aot.Report, fromCache, error) {
	var name string
	if d.cache != nil {
		name = d.cache.file(text, options)
		if report := d.cache.report(name); report != nil {
			return report, cacheHit, nil
		}
	}
	either, end := context.WithCancelCause(d.ctx)
	defer end(nil)
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	defer stop()
	if err := d.compiling.Change(either); err != nil {
		return nil, cacheOff, err
	}
	defer d.compiling.DoneChanging()
	report, err := d.machine.Compile(either, aot.Program{Text: []byte(text), Options: options}, d.limit)
	if errors.Is(err, pjrt.ErrDeadline) {
		err = fmt.Errorf("%w (xla.CompileTimeout sets the limit)", err)
	}
	if err != nil || d.cache == nil {
		return report, cacheOff, err
	}
	d.cache.keepReport(name, report)
	return report, cacheMiss, nil
}

func (p *describedProgram) run(inputs []compute.Buffer, host []any, _ runMode) ([]compute.Buffer, *Running, error) {
	if p.of.planned == "" {
		if _, err := p.compiled(context.Background()); err != nil {
			return nil, nil, err
		}
	} else if err := plannedStep(p.of.planned, p.name, p.text, p.module, p.built); err != nil {
		return nil, nil, err
	}
	parameters, outputs, err := p.parts()
	if err != nil {
		return nil, nil, err
	}
	fromHost := map[int]int{}
	first, constants := 0, 0
	if p.module != nil {
		first, constants = p.module.Constants()
	}
	for i, at := range p.built.Host {
		if constants > 0 && at >= first+constants {
			at -= constants
		}
		fromHost[at] = i
	}
	devices := max(1, len(p.options.Devices))
	if len(inputs) != devices*len(parameters) {
		return nil, nil, fmt.Errorf("expected %d inputs, got %d", devices*len(parameters), len(inputs))
	}
	for i, input := range inputs {
		want := parameters[i%len(parameters)]
		if at, ok := fromHost[i%len(parameters)]; ok {
			if _, err := memoryOf(host[i/len(parameters)*len(fromHost)+at], fromGoMLX(want)); err != nil {
				return nil, nil, fmt.Errorf("input %d from the host: %w", at, err)
			}
			continue
		}
		if err := p.of.accepts(input, want, compute.DeviceNum(i/len(parameters))); err != nil {
			return nil, nil, fmt.Errorf("input %d: %w", i, err)
		}
	}
	// A replaced input keeps its shape.
	var made []compute.Buffer
	for n := range devices {
		for i, shape := range outputs {
			if _, replaces := p.built.InPlace[i]; replaces {
				continue
			}
			b, err := p.of.put(compute.DeviceNum(n), shape)
			if err != nil {
				return nil, nil, err
			}
			made = append(made, b)
		}
	}
	return made, nil, nil
}

func (d *described) accepts(input compute.Buffer, want shapes.Shape, on compute.DeviceNum) error {
	b, ok := input.(*abstract)
	switch {
	case !ok || b == nil || b.of != d:
		return fmt.Errorf("xla: a buffer of type %T does not belong to this runtime", input)
	case b.gone.Load():
		return fmt.Errorf("the value is %w", ErrClosed)
	case !b.shape.Equal(want):
		return fmt.Errorf("%w: expected shape %s, got %s", ErrInvalidArgument, want, b.shape)
	case b.on != on:
		return fmt.Errorf("%w: expected a value on device %d, got one on %d", ErrInvalidArgument, on, b.on)
	}
	return nil
}

func (p *describedProgram) parts() (parameters, outputs []shapes.Shape, err error) {
	if p.module == nil {
		return p.reported()
	}
	for _, in := range callersParameters(p.module) {
		part, err := in.Part()
		if err != nil {
			return nil, nil, err
		}
		parameters = append(parameters, part)
	}
	for _, out := range p.module.Outputs {
		part, err := out.Part()
		if err != nil {
			return nil, nil, err
		}
		outputs = append(outputs, part)
	}
	return parameters, outputs, nil
}

func (p *describedProgram) reported() (parameters, outputs []shapes.Shape, err error) {
	report, err := p.compiled(context.Background())
	if err != nil {
		return nil, nil, err
	}
	if parameters, err = allToGoMLX(report.Parameters); err == nil {
		outputs, err = allToGoMLX(report.Outputs)
	}
	return parameters, outputs, err
}

func (p *describedProgram) explained(err error) error { return WrapError(err) }

func (p *describedProgram) close() error { return nil }

func (p *describedProgram) signature() (inputs, outputs []shapes.Shape, err error) {
	if p.module == nil {
		return p.reported()
	}
	_, inputs = describedExecutable{p}.Inputs()
	return inputs, describedExecutable{p}.Outputs(), nil
}

func (p *describedProgram) cost() (map[string]any, error) {
	report, err := p.compiled(context.Background())
	if err == nil && report.Cost == nil {
		err = fmt.Errorf("%w: the plugin %s does not compute costs", ErrUnimplemented, p.of.plugin.Kind)
	}
	if err != nil {
		return nil, err
	}
	return report.Cost, nil
}

func (p *describedProgram) memory() (Memory, error) {
	report, err := p.compiled(context.Background())
	if err == nil && report.Memory == nil {
		err = fmt.Errorf("%w: the plugin %s does not compute memory", ErrUnimplemented, p.of.plugin.Kind)
	}
	if err != nil {
		return Memory{}, err
	}
	return Memory(*report.Memory), nil
}

func (p *describedProgram) optimized() (string, error) {
	report, err := p.compiled(context.Background())
	if err == nil && report.HLO == "" {
		err = errNoText
	}
	if err != nil {
		return "", err
	}
	return report.HLO, nil
}

func (p *describedProgram) took() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.report == nil {
		return 0
	}
	return p.report.Took
}

type describedExecutable struct{ p *describedProgram }

var _ compute.Executable = describedExecutable{}

func (describedExecutable) Finalize() {}

func (e describedExecutable) Inputs() (names []string, inputs []shapes.Shape) {
	for _, p := range callersParameters(e.p.module) {
		names, inputs = append(names, p.Name), append(inputs, p.Shape)
	}
	return names, inputs
}

func (e describedExecutable) Outputs() (outputs []shapes.Shape) {
	for _, o := range e.p.module.Outputs {
		outputs = append(outputs, o.Shape)
	}
	return outputs
}

func (e describedExecutable) Execute(inputs []compute.Buffer, donate []bool, on compute.DeviceNum) (made []compute.Buffer, err error) {
	parameters, outputs, err := e.p.parts()
	if err != nil {
		return nil, err
	}
	devices := e.p.module.Devices.Count()
	if len(inputs) != len(parameters)*devices || donate != nil && len(donate) != len(inputs) {
		return nil, fmt.Errorf("xla: run %s: expected %d inputs for each of %d devices, got %d, and %d marks of donation", e.p.name, len(parameters), devices, len(inputs), len(donate))
	}
	at := func(n int) compute.DeviceNum {
		switch assigned := e.p.module.Devices.Assignment; {
		case assigned != nil:
			return assigned[n]
		case devices == 1:
			return on
		}
		return compute.DeviceNum(n)
	}
	for i, input := range inputs {
		if err := e.p.of.accepts(input, parameters[i%len(parameters)], at(i/len(parameters))); err != nil {
			return nil, fmt.Errorf("xla: run %s: input %d: %w", e.p.name, i, err)
		}
	}
	for n := range devices {
		for _, shape := range outputs {
			b, err := e.p.of.put(at(n), shape)
			if err != nil {
				return nil, err
			}
			made = append(made, b)
		}
	}
	for i, donated := range donate {
		if donated {
			err = errors.Join(err, inputs[i].Finalize())
		}
	}
	return made, err
}

func (c *cache) report(name string) *aot.Report {
	kept, err := c.read(name)
	report := new(aot.Report)
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(kept)).Decode(report)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.warn("load", name, err)
		}
		return nil
	}
	c.used(name)
	return report
}

func (c *cache) keepReport(name string, report *aot.Report) {
	var kept bytes.Buffer
	err := gob.NewEncoder(&kept).Encode(report)
	if err == nil {
		err = c.write(name, kept.Bytes())
	}
	c.warn("keep", name, err)
}

// ErrPlanned reports that lazo plan has recorded the first training step.
var ErrPlanned = errors.New("the step was recorded for lazo plan, which needs nothing more from this program: nothing runs")

// A training step has InPlace and Host.
func plannedStep(file, name, text string, m *hlo.Module, built Built) error {
	if len(built.InPlace) == 0 || len(built.Host) == 0 || m == nil || strings.HasPrefix(name, "test") {
		return nil
	}
	if _, err := os.Stat(file); err == nil {
		return ErrPlanned
	}
	s := planned.Step{Name: name, Text: text, Batch: slices.Clone(built.Host), Where: map[int]string{}}
	for _, parameter := range callersParameters(m) {
		s.Inputs = append(s.Inputs, parameter.Name)
	}
	for line, o := range m.Lines() {
		if s.Where[line] = o.Where; o.Where == "" {
			s.Where[line] = fmt.Sprintf("%s, of a gradient or another operation that lazo adds", o.Kind)
		}
	}
	if err := s.Write(file); err != nil {
		return fmt.Errorf("record it for lazo plan: %w", err)
	}
	return ErrPlanned
}
