package xla

import "github.com/gomlx/compute/shapes"

// CostFromHLO returns lazo's count, whatever the plugin reports.
func CostFromHLO(p *Program) (Cost, error) { return ask(p, "cost", p.costFromHLO) }

// CostOf returns the cost of a program whose plugin reports none, and writes this text or returns this error.
func CostOf(text string, err error) (Cost, error) {
	p := &Program{name: "program"}
	return p.cost(told{text, err})
}

type told struct {
	text string
	err  error
}

func (told) cost() (map[string]any, error) { return nil, ErrUnimplemented }
func (told) memory() (Memory, error)       { return Memory{}, ErrUnimplemented }

func (told) signature() (inputs, outputs []shapes.Shape, err error) {
	return nil, nil, ErrUnimplemented
}

func (t told) optimized() (string, error) { return t.text, t.err }

// ErrNoText is the error of a plugin that writes no optimized program.
var ErrNoText = errNoText
