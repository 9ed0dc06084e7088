package onnx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/internal/shield"
)

// checker checks a file's graphs before onnx-gomlx builds them: it would follow cycles and ignore unknown attributes.
type checker struct {
	ctx     context.Context
	version int64
	nodes   int
	errs    []error
}

type names struct {
	own   map[string]bool
	outer *names
}

func (n *names) has(name string) bool {
	for ; n != nil; n = n.outer {
		if n.own[name] {
			return true
		}
	}
	return false
}

func checkModel(ctx context.Context, of, g message, options Options) error {
	if len(of.list("functions")) > 0 {
		return errors.New("it has functions, which are not implemented")
	}
	c := checker{ctx: ctx}
	for _, set := range of.list("opset_import") {
		if ownDomain(set.text("domain")) {
			c.version = set.number("version")
		}
	}
	if c.version < 13 || c.version > 21 {
		return fmt.Errorf("its operators are those of version %d, expected 13 to 21: export it with opset_version=18", c.version)
	}
	known := &names{own: map[string]bool{}}
	if err := errors.Join(c.graph(g, known, 0), errors.Join(c.errs...)); err != nil {
		return err
	}
	for i, name := range options.Outputs {
		if !known.has(name) || slices.Contains(options.Outputs[:i], name) {
			return fmt.Errorf("Options.Outputs has %q, expected each a value of the graph, once: its outputs are %q", name, g.named("output"))
		}
	}
	return nil
}

func ownDomain(name string) bool { return name == "" || name == "ai.onnx" }

func (c *checker) graph(g message, known *names, depth int) error {
	if depth > mostDepth {
		return fmt.Errorf("branches in branches, deeper than %d", mostDepth)
	}
	if len(g.list("sparse_initializer")) > 0 {
		return errors.New("it has sparse initializers, which are not implemented")
	}
	if depth > 0 && len(g.list("input")) > 0 {
		return errors.New("a branch has inputs, expected none")
	}
	for _, name := range g.named("input") {
		if name == "" || known.has(name) {
			return fmt.Errorf("two inputs are named %q", name)
		}
		if err := free(name); err != nil {
			return err
		}
		known.own[name] = true
	}
	weights := map[string]bool{}
	for _, t := range g.list("initializer") {
		name := t.text("name")
		if name == "" || weights[name] || known.outer.has(name) {
			return fmt.Errorf("two initializers are named %q", name)
		}
		if err := errors.Join(free(name), shield.Context(c.ctx)); err != nil {
			return err
		}
		weights[name], known.own[name] = true, true
		if err := t.normalize(); err != nil {
			return err
		}
	}
	for _, node := range g.list("node") {
		if err := c.node(node, known, depth); err != nil {
			return err
		}
	}
	if len(g.list("output")) == 0 {
		return errors.New("a graph has no output")
	}
	for _, v := range g.list("output") {
		if name := v.text("name"); !known.has(name) {
			return fmt.Errorf("the output %q is not the output of a node", name)
		}
		v.clear("type") // not needed, but onnx-gomlx reads one
		v.mutable("type").mutable("tensor_type").set("elem_type", int32(1))
	}
	g.clear("value_info")
	return nil
}

// node collects unimplemented operators: a message lists several.
func (c *checker) node(node message, known *names, depth int) error {
	if err := shield.Context(c.ctx); err != nil {
		return err
	}
	if c.nodes++; c.nodes > mostNodes {
		return fmt.Errorf("more than %d nodes", mostNodes)
	}
	for _, name := range node.texts("input") {
		if name != "" && !known.has(name) {
			return fmt.Errorf("%s has the input %q, which no node before it makes", label(node), name)
		}
	}
	if err := c.operator(node); err != nil && len(c.errs) < 10 { // enough for a message
		c.errs = append(c.errs, fmt.Errorf("%s: %w", label(node), err))
	}
	for _, a := range node.list("attribute") {
		if a.has("t") {
			if err := a.child("t").normalize(); err != nil {
				return fmt.Errorf("%s: %w", label(node), err)
			}
		}
		if a.has("g") {
			if err := c.graph(a.child("g"), &names{map[string]bool{}, known}, depth+1); err != nil {
				return fmt.Errorf("%s: %w", label(node), err)
			}
		}
	}
	outputs := node.texts("output")
	if len(outputs) == 0 || outputs[0] == "" {
		return fmt.Errorf("%s has no first output", label(node))
	}
	for _, name := range outputs {
		if name == "" {
			continue
		}
		if known.has(name) {
			return fmt.Errorf("%s has the output %q, a name that is taken", label(node), name)
		}
		if err := free(name); err != nil {
			return fmt.Errorf("%s: %w", label(node), err)
		}
		known.own[name] = true
	}
	return nil
}

// free refuses names that values of added nodes may have.
func free(name string) error {
	if strings.Contains(name, joint) {
		return fmt.Errorf("the value %q has a name with %q, expected one without", name, joint)
	}
	return nil
}

func label(node message) string {
	name := node.text("name")
	if outputs := node.texts("output"); name == "" && len(outputs) > 0 {
		name = outputs[0]
	}
	return fmt.Sprintf("the node %q of the operator %s", name, strings.TrimPrefix(node.text("domain")+"."+node.text("op_type"), "."))
}
