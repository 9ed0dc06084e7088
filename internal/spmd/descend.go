package spmd

import (
	"fmt"
	"slices"
)

func (r *rewriter) descend(c *computation, in *instruction, after int64) (last int64, err error) {
	switch in.opcode {
	case "call":
		if err := r.reform(in.called[0], called); err != nil {
			return 0, err
		}
		return r.calling(c, in, append(slices.Clone(in.operands), after), in.called), nil
	case "conditional":
		if len(in.operands) != len(in.called)+1 {
			return 0, fmt.Errorf("%w: %s of %s has %d operands for %d branches", errMalformed, in.name, c.name, len(in.operands), len(in.called))
		}
		operands := []int64{in.operands[0]}
		for i, id := range in.called {
			if err := r.reform(id, branched); err != nil {
				return 0, err
			}
			given := in.operands[i+1]
			operands = append(operands, c.add("tuple", "given", tupleOf(c.byID[given].shape, token), []int64{given, after}, nil).id)
		}
		return r.calling(c, in, operands, in.called), nil
	}
	return r.loop(c, in, after)
}

// calling makes a call return (result, token).
func (r *rewriter) calling(c *computation, in *instruction, operands, computations []int64) (last int64) {
	made := c.add(in.opcode, in.name, tupleOf(in.shape, token), operands, nil)
	made.inherit(in, computations)
	in.become("get-tuple-element", []int64{made.id}, appendNumber(nil, fieldTupleIndex, 0))
	return c.element(made.id, 1, token, "token").id
}

func (in *instruction) inherit(from *instruction, computations []int64) {
	in.called, in.control = computations, from.control
	for _, f := range from.rest {
		if f.number != fieldOriginalValue {
			in.rest = append(in.rest, f)
		}
	}
}

func (r *rewriter) loop(c *computation, in *instruction, after int64) (last int64, err error) {
	if len(in.called) != 2 || len(in.operands) != 1 {
		return 0, fmt.Errorf("%w: the loop %s of %s calls %d computations", errMalformed, in.name, c.name, len(in.called))
	}
	body, condition := in.called[0], in.called[1]
	if r.holds[condition] || in.shape.element != typeTuple {
		return r.loopByTest(c, in, after)
	}
	if err := r.reform(body, carried); err != nil {
		return 0, err
	}
	if err := r.reform(condition, tested); err != nil {
		return 0, err
	}
	given := c.extended(in.operands[0], after)
	state := tupleOf(append(slices.Clone(in.shape.tuple), token)...)
	made := c.add("while", in.name, state, []int64{given}, nil)
	made.inherit(in, in.called)
	return c.shortened(in, made.id), nil
}

func (c *computation) extended(tuple, last int64) int64 {
	of := c.byID[tuple]
	shapes := append(slices.Clone(of.shape.tuple), token)
	var elements []int64
	if of.opcode == "tuple" {
		elements = slices.Clone(of.operands)
	} else {
		for i, s := range of.shape.tuple {
			elements = append(elements, c.element(tuple, int64(i), s, of.name).id)
		}
	}
	return c.add("tuple", of.name, tupleOf(shapes...), append(elements, last), nil).id
}

// A tuple without its last element, a token, replaces the instruction.
func (c *computation) shortened(in *instruction, of int64) (last int64) {
	var elements []int64
	for i, s := range in.shape.tuple {
		elements = append(elements, c.element(of, int64(i), s, in.name).id)
	}
	last = c.element(of, int64(len(in.shape.tuple)), token, "token").id
	in.become("tuple", elements, nil)
	return last
}

func (r *rewriter) reform(id int64, as form) error {
	switch before := r.forms[id]; before {
	case as:
		return nil
	case "":
	default:
		return fmt.Errorf("%w: the computation %s is %s and %s", ErrUnsupported, r.byID[id].name, before, as)
	}
	c := r.byID[id]
	for _, other := range r.computations {
		for _, in := range other.instructions {
			if slices.Contains(in.called, id) && !slices.Contains([]string{"while", "call", "conditional"}, in.opcode) {
				return fmt.Errorf("%w: the computation %s is %s, and %s calls it too", ErrUnsupported, c.name, as, in.name)
			}
		}
	}
	r.forms[id] = as
	parameters := c.parameters()
	if as != called && len(parameters) != 1 {
		return fmt.Errorf("%w: %s of a loop or branch has %d parameters", errMalformed, c.name, len(parameters))
	}
	parameter := func(n int, name string, s shape) *instruction {
		return c.add("parameter", name, s, nil, appendNumber(nil, fieldParameterNumber, int64(n)))
	}
	var start int64
	switch as {
	case called:
		start = parameter(len(parameters), "token", token).id
	case branched:
		old := parameters[0]
		p := parameter(0, old.name, tupleOf(old.shape, token))
		start = c.element(p.id, 1, token, "token").id
		old.become("get-tuple-element", []int64{p.id}, appendNumber(nil, fieldTupleIndex, 0))
	default:
		old := parameters[0]
		if old.shape.element != typeTuple {
			return fmt.Errorf("%w: the loop of %s is not over a tuple", ErrUnsupported, c.name)
		}
		p := parameter(0, old.name, tupleOf(append(slices.Clone(old.shape.tuple), token)...))
		start = c.shortened(old, p.id)
	}
	if as == tested {
		return nil
	}
	// chain depends on the order.
	if err := c.sort(); err != nil {
		return err
	}
	last, err := r.chain(c, start)
	if err != nil {
		return err
	}
	if as == carried {
		c.root = c.extended(c.root, last)
	} else {
		c.root = c.add("tuple", "result", tupleOf(c.byID[c.root].shape, token), []int64{c.root, last}, nil).id
	}
	return nil
}

// loopByTest handles a loop over one array, or whose condition exchanges. A condition returns no token: it is called
// before the loop and at the body's end, and the loop carries its result.
func (r *rewriter) loopByTest(c *computation, in *instruction, after int64) (last int64, err error) {
	for _, id := range in.called {
		if err := r.reform(id, called); err != nil {
			return 0, err
		}
	}
	body, condition := in.called[0], in.called[1]
	call := func(c *computation, id int64, result shape, operands ...int64) (of, last int64) {
		made := c.add("call", r.byID[id].name, tupleOf(result, token), operands, nil)
		made.called = []int64{id}
		return c.element(made.id, 0, result, "result").id, c.element(made.id, 1, token, "token").id
	}
	state, holds := in.shape, array(typePred)
	whole := tupleOf(state, holds, token)

	turn := r.addComputation(r.byID[body].name)
	p := turn.add("parameter", "state", whole, nil, appendNumber(nil, fieldParameterNumber, 0)).id
	next, then := call(turn, body, state, turn.element(p, 0, state, "state").id, turn.element(p, 2, token, "token").id)
	again, then := call(turn, condition, holds, next, then)
	turn.root = turn.add("tuple", "state", whole, []int64{next, again, then}, nil).id

	test := r.addComputation(r.byID[condition].name)
	p = test.add("parameter", "state", whole, nil, appendNumber(nil, fieldParameterNumber, 0)).id
	test.root = test.element(p, 1, holds, "holds").id

	first, then := call(c, condition, holds, in.operands[0], after)
	given := c.add("tuple", "state", whole, []int64{in.operands[0], first, then}, nil)
	made := c.add("while", in.name, whole, []int64{given.id}, nil)
	made.inherit(in, []int64{turn.id, test.id})
	in.become("get-tuple-element", []int64{made.id}, appendNumber(nil, fieldTupleIndex, 0))
	return c.element(made.id, 2, token, "token").id, nil
}
