package xla

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/xla/hlo"
	"github.com/lazo-ml/lazo/xla/pjrt"
)

// Lower builds a graph as [Runtime.Compile] does and gives its program in StableHLO, without compiling it; so it works
// on the plugin [Go] too. The program is that of one run: [Built].Block is not looked at. It is written for any reader
// of StableHLO: see [hlo.Builder.Plain].
func (r *Runtime) Lower(name string, build func(g *graph.Graph) Built) (*hlo.Module, error) {
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

// lowering is a backend that keeps the program and compiles nothing.
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

// lowered is what a graph takes for its executable.
type lowered struct{ *executable }

func (lowered) Finalize() {}

func (l lowered) Execute([]compute.Buffer, []bool, compute.DeviceNum) ([]compute.Buffer, error) {
	return nil, fmt.Errorf("xla: run %s: it was only lowered: use Compile", l.module.Name)
}

// CompileStableHLO compiles a program that is there as text, for the first device. [Built] says what its inputs are,
// and may be empty: with no InPlace it is as the text says (tf.aliasing_output). Outputs and Block are not looked at.
//
// A program is code: XLA checks its text, but a text made to harm may crash the process, which says so, or take all
// memory: try it in a child process, as the command lazo hlo does. The plugin [Go] cannot compile text:
// [ErrUnimplemented].
func (r *Runtime) CompileStableHLO(name, text string, built Built) (*Program, error) {
	p, err := r.compileText(name, text, built, nil)
	if err != nil {
		return nil, during(err, "compile %s", name)
	}
	return p, nil
}

// compileText compiles past the cache if options of XLA's debugging are given: they are for what compiling leaves
// behind.
func (r *Runtime) compileText(name, text string, built Built, debug map[string]any) (*Program, error) {
	on, ok := r.Backend.(*client)
	switch {
	case r.closed.Load():
		return nil, errClosed
	case !ok:
		return nil, fmt.Errorf("%w: the plugin %s takes no StableHLO", ErrUnimplemented, r.plugin.Kind)
	}
	options := on.options()
	options.Devices = []int{on.devices[0].ID()}
	maps.Copy(options.Debug, debug)
	compile := on.cache.compile
	if debug != nil {
		compile = (*cache)(nil).compile
	}
	compiled, _, err := compile(on.client, text, options)
	if err != nil {
		return nil, err
	}
	runs, err := on.textCall(compiled, name, &built)
	if err != nil {
		return nil, errors.Join(err, compiled.Close())
	}
	return &Program{name: name, built: built, runs: runs, text: text, block: 1}, nil
}

// textCall makes a program that can be run from a text; only the plugin knows its inputs and outputs.
func (c *client) textCall(compiled *pjrt.Executable, name string, built *Built) (*calls, error) {
	m := &hlo.Module{Name: name}
	parameters, err := compiled.Parameters()
	if err != nil {
		return nil, err
	}
	donated, err := compiled.Donated()
	if err != nil {
		return nil, err
	}
	if err := graphs.Catch(func() { // a text may have types that GoMLX has not
		for _, s := range parameters {
			m.Parameters = append(m.Parameters, hlo.Parameter{Shape: toGoMLX(s)})
		}
		for _, s := range compiled.Outputs() {
			m.Outputs = append(m.Outputs, hlo.Output{Shape: toGoMLX(s)})
		}
	}); err != nil {
		return nil, err
	}
	if built.InPlace == nil {
		built.InPlace = donated
	}
	for _, output := range slices.Sorted(maps.Keys(donated)) {
		if at, named := built.InPlace[output]; !named || at != donated[output] {
			return nil, fmt.Errorf("the program writes output %d over input %d: expected the same of InPlace, got %v", output, donated[output], built.InPlace)
		}
	}
	for _, input := range built.Host {
		if input < 0 || input >= len(m.Parameters) {
			return nil, fmt.Errorf("input %d from the host: the program has %d", input, len(m.Parameters))
		}
	}
	return (&executable{of: c, module: m, pjrt: compiled}).newCalls(*built, Placement{})
}
