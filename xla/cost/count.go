package cost

import (
	"fmt"
	"maps"
	"strings"
)

type tally struct {
	matrix          map[string]float64 // FLOPs of products and convolutions, by dtype
	vector          float64
	transcendentals float64
	bytes           float64 // device memory, read and written
	exchanges       map[exchangeKey]float64
	uncounted       map[string]float64
	loops           map[string]bool
}

func newTally() *tally {
	return &tally{matrix: map[string]float64{}, exchanges: map[exchangeKey]float64{}, uncounted: map[string]float64{}, loops: map[string]bool{}}
}

func (t *tally) add(o *tally, times float64) {
	for k, n := range o.matrix {
		t.matrix[k] += n * times
	}
	for k, n := range o.exchanges {
		t.exchanges[k] += n * times
	}
	for k, n := range o.uncounted {
		t.uncounted[k] += n * times
	}
	maps.Copy(t.loops, o.loops)
	t.vector += o.vector * times
	t.transcendentals += o.transcendentals * times
	t.bytes += o.bytes * times
}

func (t *tally) flops() float64 {
	sum := t.vector
	for _, n := range t.matrix {
		sum += n
	}
	return sum
}

type counter struct {
	m     *module
	mesh  []Axis
	done  map[countKey]*tally
	stack map[*computation]bool
	// begins has the computations with an asynchronous start, first each channel's first one without.
	begins map[*computation]bool
	first  map[string]*computation
}

type countKey struct {
	of     *computation
	inside bool
}

func (c *counter) computation(of *computation, inside bool) (*tally, error) {
	key := countKey{of, inside}
	if t := c.done[key]; t != nil {
		return t, nil
	}
	if c.stack[of] {
		return nil, fmt.Errorf("computation %q calls itself", of.name)
	}
	if len(c.stack) > maxDepth*maxDepth {
		return nil, fmt.Errorf("computation %q: more than %d calls in each other", of.name, maxDepth*maxDepth)
	}
	c.stack[of] = true
	defer delete(c.stack, of)
	t := newTally()
	for _, i := range of.instructions {
		if err := c.instruction(t, of, i, inside); err != nil {
			return nil, err
		}
	}
	c.done[key] = t
	return t, nil
}

// Counted separately: their FLOPs depend on the device.
var transcendental = map[string]bool{
	"erf": true, "exponential": true, "log": true, "logistic": true, "power": true, "sqrt": true, "cbrt": true, "rsqrt": true, "tanh": true, "sine": true,
	"cosine": true, "tan": true, "exponential-minus-one": true, "log-plus-one": true, "atan2": true, "acos": true, "acosh": true, "asin": true, "asinh": true,
	"atan": true, "atanh": true, "cosh": true, "sinh": true,
}

// 1 per element, as in XLA.
var elementwise = map[string]bool{
	"abs": true, "add": true, "and": true, "ceil": true, "clamp": true, "compare": true, "complex": true, "convert": true, "count-leading-zeros": true,
	"divide": true, "floor": true, "imag": true, "is-finite": true, "maximum": true, "minimum": true, "multiply": true, "negate": true, "not": true, "or": true,
	"popcnt": true, "real": true, "reduce-precision": true, "remainder": true, "round-nearest-afz": true, "round-nearest-even": true, "select": true,
	"shift-left": true, "shift-right-arithmetic": true, "shift-right-logical": true, "sign": true, "stochastic-convert": true, "subtract": true, "xor": true,
}

// They do not touch memory.
var free = map[string]bool{
	"parameter": true, "constant": true, "tuple": true, "get-tuple-element": true, "bitcast": true, "after-all": true, "add-dependency": true,
	"optimization-barrier": true, "opt-barrier": true, "partition-id": true, "replica-id": true, "domain": true, "get-dimension-size": true,
}

// They only copy.
var moved = map[string]bool{
	"bitcast-convert": true, "broadcast": true, "concatenate": true, "copy": true, "dynamic-reshape": true, "dynamic-slice": true, "dynamic-update-slice": true,
	"gather": true, "iota": true, "pad": true, "reshape": true, "reverse": true, "set-dimension-size": true, "slice": true, "transpose": true,
	"copy-start": true, "copy-done": true, "infeed": true, "outfeed": true, "send": true, "send-done": true, "recv": true, "recv-done": true,
}

func (c *counter) instruction(t *tally, of *computation, i *instruction, inside bool) error {
	opcode := i.opcode
	switch {
	case free[opcode] || strings.HasSuffix(opcode, "-done") || strings.HasSuffix(opcode, "-update"):
		// Counted at its "-start".
		return nil
	case opcode == "async-start":
		return c.calls(t, i, inside, "calls")
	case strings.HasSuffix(opcode, "-start"):
		opcode = strings.TrimSuffix(opcode, "-start")
	}
	if collectives[opcode] {
		if !inside {
			t.bytes += instructionBytes(i)
		}
		if strings.HasPrefix(opcode, "all-reduce") || opcode == "reduce-scatter" {
			for _, o := range i.operands {
				t.vector += o.shape.elements()
			}
		}
		return c.exchange(t, of, i, opcode)
	}
	switch opcode {
	case "while":
		return c.loop(t, i, inside)
	case "conditional":
		return c.branches(t, i, inside)
	case "call":
		return c.calls(t, i, inside, "to_apply")
	case "fusion":
		if !inside {
			bytes, err := c.fusionBytes(i)
			if err != nil {
				return err
			}
			t.bytes += bytes
		}
		return c.calls(t, i, true, "calls")
	}
	if !inside {
		t.bytes += instructionBytes(i)
	}
	return c.arithmetic(t, i, opcode)
}

func (c *counter) calls(t *tally, i *instruction, inside bool, attribute string) error {
	called, err := c.m.called(i, attribute)
	if err != nil {
		return err
	}
	for _, f := range called {
		inner, err := c.computation(f, inside)
		if err != nil {
			return err
		}
		t.add(inner, 1)
	}
	return nil
}

func (c *counter) branches(t *tally, i *instruction, inside bool) error {
	var most *tally
	for _, attribute := range []string{"branch_computations", "true_computation", "false_computation"} {
		called, err := c.m.called(i, attribute)
		if err != nil {
			return err
		}
		for _, f := range called {
			inner, err := c.computation(f, inside)
			if err != nil {
				return err
			}
			if most == nil || inner.flops()+inner.bytes > most.flops()+most.bytes {
				most = inner
			}
		}
	}
	if most != nil {
		t.add(most, 1)
	}
	return nil
}

func (c *counter) loop(t *tally, i *instruction, inside bool) error {
	body, err := c.m.called(i, "body")
	if err != nil {
		return err
	}
	condition, err := c.m.called(i, "condition")
	if err != nil {
		return err
	}
	if len(body) != 1 || len(condition) != 1 {
		return fmt.Errorf("instruction %q (line %d): a loop with %d bodies and %d conditions", i.name, i.line, len(body), len(condition))
	}
	trips, known := trips(i, body[0], condition[0])
	if !known {
		trips = 1
		at, _ := c.m.places.of(i)
		t.loops[strings.TrimSpace(i.name+" "+at.String())] = true
	}
	inner, err := c.computation(body[0], inside)
	if err != nil {
		return err
	}
	t.add(inner, trips)
	inner, err = c.computation(condition[0], inside)
	if err != nil {
		return err
	}
	t.add(inner, trips+1)
	return nil
}

func (c *counter) each(i *instruction, attribute string) (*tally, error) {
	called, err := c.m.called(i, attribute)
	if err != nil {
		return nil, err
	}
	if len(called) != 1 {
		return nil, fmt.Errorf("instruction %q (line %d): %s calls %d computations as %s, expected one", i.name, i.line, i.opcode, len(called), attribute)
	}
	return c.computation(called[0], true)
}

func (c *counter) apply(t *tally, i *instruction, attribute string, times float64) error {
	one, err := c.each(i, attribute)
	if err != nil {
		return err
	}
	t.add(one, max(times, 0))
	return nil
}
