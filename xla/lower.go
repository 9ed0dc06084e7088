package xla

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/hlo"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

// Module is a lowered graph. Its method Text returns StableHLO; Parameters and Outputs describe the values in order.
type Module = hlo.Module

// Lower returns a graph's StableHLO without compiling, also with [Go]. It ignores [Built].Block.
func (r *Runtime) Lower(name string, build func(g *graph.Graph) Built) (*Module, error) {
	if r.closed.Load() {
		return nil, during(errClosed, "lower %s", name)
	}
	l := &lowering{capture: &capture{Runtime: r, program: &Program{name: name}}}
	err := graphs.Catch(func() {
		g := graph.NewGraph(l, name)
		l.program.built = build(g)
		if err := g.Compile(l.program.built.Outputs...); err != nil {
			panic(err)
		}
	})
	if err != nil {
		return nil, during(err, "lower %s", name)
	}
	return l.module, nil
}

type lowering struct {
	*capture
	module *hlo.Module
}

func (l *lowering) Capabilities() compute.Capabilities { return hlo.Capabilities() }

func (l *lowering) Builder(name string) compute.Builder {
	l.lower = hlo.New(name, func(m *hlo.Module) (compute.Executable, error) {
		l.module = m
		return lowered{&executable{module: m}}, nil
	}).Plain()
	return l.program.builder(l.lower)
}

type lowered struct{ *executable }

func (lowered) Finalize() {}

func (l lowered) Execute([]compute.Buffer, []bool, compute.DeviceNum) ([]compute.Buffer, error) {
	return nil, fmt.Errorf("xla: run %s: it was only lowered, not compiled: use Compile", l.module.Name)
}

// CompileStableHLO compiles a text for the first device; on a described machine ([OpenTopology]), for
// mhlo.num_partitions devices. built describes the inputs; without InPlace, tf.aliasing_output counts. Its Outputs
// and Block are ignored. [Go] fails with [ErrUnimplemented].
//
// If ctx ends, a described machine's compiler ends with the cause; others finish.
//
// A malicious text may crash the process or exhaust memory: try it in a child process.
func (r *Runtime) CompileStableHLO(ctx context.Context, name, text string, built Built) (*Program, error) {
	p, err := r.compileText(ctx, name, text, built)
	if err != nil {
		return nil, during(err, "compile %s", name)
	}
	return p, nil
}

func (r *Runtime) compileText(ctx context.Context, name, text string, built Built) (*Program, error) {
	if r.closed.Load() {
		return nil, errClosed
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	switch on := r.Backend.(type) {
	case *pjrtClient:
		options := on.textOptions()
		compiled, _, err := on.compileText(text, options)
		if err != nil {
			return nil, err
		}
		runs, err := on.textCall(compiled, name, &built)
		if err != nil {
			return nil, errors.Join(err, compiled.Close())
		}
		runs.executable.text, runs.executable.options = text, options
		return &Program{name: name, built: built, runs: runs, text: text, block: 1, devices: 1}, nil
	case *described:
		runs, err := on.textProgram(ctx, name, text, &built)
		if err != nil {
			return nil, err
		}
		return &Program{name: name, built: built, runs: runs, text: text, block: 1, devices: 1}, nil
	}
	return nil, fmt.Errorf("%w: the plugin %s takes no StableHLO", ErrUnimplemented, r.plugin.Kind)
}

func (c *pjrtClient) textOptions() pjrt.CompileOptions {
	options := baseOptions(c.plugin.Kind)
	options.Devices = []int{c.devices[0].ID()}
	return options
}

func (d *described) textProgram(ctx context.Context, name, text string, built *Built) (*describedProgram, error) {
	options := baseOptions(d.plugin.Kind)
	partitions, err := partitionsOf(text)
	if err == nil && partitions > d.NumDevices() {
		err = fmt.Errorf("it is for %d devices, %s has %d", partitions, d.name, d.NumDevices())
	}
	if err != nil {
		return nil, err
	}
	for n := range partitions {
		options.Devices = append(options.Devices, d.about.Devices[n].ID)
	}
	if partitions > 1 {
		options.Replicas, options.Partitions, options.SPMD = 1, partitions, true
		options.Shardy = strings.Contains(text, "sdy.mesh")
	}
	p := &describedProgram{of: d, name: name, text: text, options: options}
	report, err := p.compiled(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkBuilt(built, report.Donated, len(report.Parameters)); err != nil {
		return nil, err
	}
	p.built = *built
	return p, nil
}

var partitionsPattern = regexp.MustCompile(`mhlo\.num_partitions = (\d+)`)

func partitionsOf(text string) (int, error) {
	head, _, _ := strings.Cut(text, "\n")
	found := partitionsPattern.FindStringSubmatch(head)
	if found == nil {
		return 1, nil
	}
	n, err := strconv.Atoi(found[1])
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s: expected a number of devices from 1 up", found[0])
	}
	return n, nil
}

func checkBuilt(built *Built, donated map[int]int, parameters int) error {
	if built.InPlace == nil {
		built.InPlace = donated
	}
	for _, output := range slices.Sorted(maps.Keys(donated)) {
		if at, named := built.InPlace[output]; !named || at != donated[output] {
			return fmt.Errorf("the program writes output %d over input %d: expected the same of InPlace, got %v", output, donated[output], built.InPlace)
		}
	}
	for _, input := range built.Host {
		if input < 0 || input >= parameters {
			return fmt.Errorf("input %d from the host: the program has %d", input, parameters)
		}
	}
	return nil
}

func (c *pjrtClient) textCall(compiled *pjrt.Executable, name string, built *Built) (*calls, error) {
	m := &hlo.Module{Name: name}
	parameters, err := compiled.Parameters()
	if err != nil {
		return nil, err
	}
	donated, err := compiled.Donated()
	if err != nil {
		return nil, err
	}
	inputs, err := allToGoMLX(parameters)
	if err != nil {
		return nil, err
	}
	outputs, err := allToGoMLX(compiled.Outputs())
	if err != nil {
		return nil, err
	}
	for _, s := range inputs {
		m.Parameters = append(m.Parameters, hlo.Parameter{Shape: s})
	}
	for _, s := range outputs {
		m.Outputs = append(m.Outputs, hlo.Output{Shape: s})
	}
	if err := checkBuilt(built, donated, len(m.Parameters)); err != nil {
		return nil, err
	}
	return (&executable{of: c, module: m, pjrt: compiled}).newCalls(*built, Placement{})
}
