package xla

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/planned"
)

// ErrPlanned reports that lazo plan has recorded the first training step.
var ErrPlanned = errors.New("the step was recorded for lazo plan, which needs nothing more from this program: nothing runs")

// openPlanned opens lazo plan's machine, if any, and ignores options.
func openPlanned(ctx context.Context, plugin string) (*Runtime, error) {
	value, set := os.LookupEnv(planned.Variable)
	if !set || plugin == Go {
		return nil, nil
	}
	order, err := planned.ParseOrder(value)
	if err != nil {
		return nil, fmt.Errorf("xla: open %q: %w", plugin, err)
	}
	r, err := OpenTopology(ctx, order.Plugin, order.Topology, Root(order.Root))
	if err != nil {
		return nil, err
	}
	r.Backend.(*described).planned = order.File
	return r, nil
}

// plannedStep records a program with InPlace and Host that is not a test.
func (p *describedProgram) plannedStep(name string) error {
	if p.of.planned == "" || len(p.built.InPlace) == 0 || len(p.built.Host) == 0 || p.module == nil || strings.HasPrefix(name, "test") {
		return nil
	}
	if _, err := os.Stat(p.of.planned); err == nil { // recorded before
		return ErrPlanned
	}
	s := planned.Step{Name: name, Text: p.text, Batch: slices.Clone(p.built.Host), Where: map[int]string{}}
	for _, parameter := range callersParameters(p.module) {
		s.Inputs = append(s.Inputs, parameter.Name)
	}
	for line, o := range p.module.Lines() {
		if s.Where[line] = o.Where; o.Where == "" {
			s.Where[line] = fmt.Sprintf("%s, of a gradient or another operation that lazo adds", o.Kind)
		}
	}
	if err := s.Write(p.of.planned); err != nil {
		return fmt.Errorf("record it for lazo plan: %w", err)
	}
	return ErrPlanned
}
