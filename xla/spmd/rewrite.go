package spmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnsupported: the program has an exchange, or a form around one, that is not known here. Left as it is it would
// give wrong numbers, so there is no program then.
var ErrUnsupported = errors.New("the exchange is not supported")

// Summary says what a rewritten program exchanges.
type Summary struct {
	// Exchanges is how many collective instructions there were.
	Exchanges int
	// Calls are those of the handlers, by their sites.
	Calls []Call
}

// Call is a call of a handler.
type Call struct {
	Site         int64    // its attribute site, and its place in [Summary.Calls]
	Target       string   // the handler, such as [AllReduce]
	Instructions []string // what it stands for, with their lines where the program has them
	Arrays       int      // that it takes
	Bytes        int64    // of them
	GroupSize    int      // how many partitions exchange with each other; 0 for pairs
	Computation  string   // in which it stands: that of a loop runs more than once
}

// Rewrite makes of one partition's program, as [Partition] gives it, the program that each of so many processes runs,
// one for each partition. Both are serialized HloModuleProtos; the result is for one partition, and the same for all
// ranks. Each exchange in it is a typed custom call (see the package), and a chain of tokens has all ranks make them in
// one order; all else stays as it is. If an exchange is not known here, the error matches [ErrUnsupported] and names
// it.
func Rewrite(partitioned []byte, ranks int) (rewritten []byte, found Summary, err error) {
	if ranks < 1 || ranks > most {
		return nil, Summary{}, fmt.Errorf("spmd: rewrite for %d ranks: expected 1 to %d", ranks, most)
	}
	m, err := parseModule(partitioned)
	if err != nil {
		return nil, Summary{}, fmt.Errorf("spmd: rewrite: %w", err)
	}
	r := &rewriter{module: m, ranks: ranks, exchanges: map[*instruction]*exchange{}, holds: map[int64]bool{}, forms: map[int64]form{}}
	if err := r.rewrite(); err != nil {
		return nil, Summary{}, fmt.Errorf("spmd: rewrite %s: %w", m.name, err)
	}
	return m.marshal(), r.found, nil
}

// rewriter rewrites a module.
type rewriter struct {
	*module
	ranks     int
	exchanges map[*instruction]*exchange
	holds     map[int64]bool // computations that exchange, by themselves or by what they call
	forms     map[int64]form // of computations that were given a token
	found     Summary
}

// form is how a computation takes a token and gives it back.
type form string

const (
	carried  form = "the body of a loop"      // its tuple has one element more
	tested   form = "the condition of a loop" // likewise; it gives none back
	called   form = "a call"                  // a parameter more; a tuple of the result and the token
	branched form = "a branch"                // a tuple of the parameter and the token; likewise
)

func (r *rewriter) rewrite() error {
	if err := r.module.sort(); err != nil { // those that are called stand first
		return err
	}
	for _, c := range r.computations {
		if err := r.read(c); err != nil {
			return err
		}
	}
	entry := r.byID[r.entry]
	for _, c := range slices.Clone(r.computations) {
		if c != entry && !r.holds[c.id] {
			continue
		}
		if c != entry && !r.calls(c) {
			return fmt.Errorf("%w: nothing calls the computation %s, which has some", ErrUnsupported, c.name)
		}
	}
	if r.holds[entry.id] {
		start := entry.add("after-all", "start", token, nil, nil)
		if _, err := r.chain(entry, start.id); err != nil {
			return err
		}
	}
	for _, c := range r.computations {
		if err := c.sort(); err != nil {
			return err
		}
	}
	return r.module.sort()
}

// calls tells whether an instruction calls a computation.
func (r *rewriter) calls(called *computation) bool {
	for _, c := range r.computations {
		for _, in := range c.instructions {
			if slices.Contains(in.called, called.id) {
				return true
			}
		}
	}
	return false
}

// read finds the exchanges of a computation, and asks a handler for the number of the partition. It is no constant:
// with one, the compiler would make other programs for other ranks, and sums of the same numbers could have other bits.
func (r *rewriter) read(c *computation) error {
	for _, in := range c.instructions {
		inner := slices.ContainsFunc(in.called, func(id int64) bool { return r.holds[id] })
		switch {
		case in.opcode == "partition-id" || in.opcode == "replica-id":
			if in.shape.element != typeU32 || len(in.shape.dims) > 0 {
				return fmt.Errorf("%w: %s %s of %s is no u32", errMalformed, in.opcode, in.name, c.name)
			}
			if in.opcode == "replica-id" { // there is one
				literal := appendNumbers(appendBytes(nil, fieldLiteralShape, in.shape.marshal()), fieldU32s, []int64{0})
				in.become("constant", nil, appendBytes(nil, fieldLiteral, literal))
				break
			}
			extra := appendBytes(appendBytes(nil, fieldTarget, Rank), fieldBackendConfig, "{}")
			in.become("custom-call", nil, appendNumber(extra, fieldAPIVersion, typedFFI))
		case isExchange(in.opcode):
			x, err := r.exchange(c, in)
			if err != nil {
				return err
			}
			r.exchanges[in], r.holds[c.id] = x, true
			r.found.Exchanges++
		case in.channel > 0:
			return fmt.Errorf("%w: %s %s of %s%s has the channel %d", ErrUnsupported, in.opcode, in.name, c.name, r.where(in), in.channel)
		case inner && in.opcode != "while" && in.opcode != "call" && in.opcode != "conditional":
			return fmt.Errorf("%w: %s %s of %s%s calls a computation that exchanges; expected while, call or conditional", ErrUnsupported, in.opcode, in.name, c.name, r.where(in))
		case inner:
			r.holds[c.id] = true
		}
	}
	return nil
}

// link is a piece of the chain of tokens: exchanges that are made at once, or one instruction that calls computations
// with some.
type link struct {
	depth  int
	key    string
	joined []*instruction
}

// chain puts all that exchanges in a computation into one order, from a token on, and gives the last token.
//
// The order is that of depth: how many of them lie before one on the longest way to it. What has one depth does not
// need each other, so sums of one kind can be made at once; and none waits for one of a greater depth.
func (r *rewriter) chain(c *computation, after int64) (last int64, err error) {
	depths := make(map[int64]int, len(c.instructions))
	var links []*link
	byKey := map[string]*link{}
	for _, in := range c.instructions {
		depth := 0
		for _, id := range slices.Concat(in.operands, in.control) {
			depth = max(depth, depths[id])
		}
		depths[in.id] = depth
		x := r.exchanges[in]
		if x == nil && !slices.ContainsFunc(in.called, func(id int64) bool { return r.holds[id] }) {
			continue
		}
		depths[in.id] = depth + 1
		l := &link{depth: depth}
		if x != nil && x.target == AllReduce {
			l.key = fmt.Sprint(depth, x.op, x.kinds(), x.groups)
			if same := byKey[l.key]; same != nil {
				l = same
			} else {
				byKey[l.key] = l
			}
		}
		if l.joined = append(l.joined, in); len(l.joined) == 1 {
			links = append(links, l)
		}
	}
	slices.SortStableFunc(links, func(a, b *link) int { return a.depth - b.depth })
	last = after
	for _, l := range links {
		if r.exchanges[l.joined[0]] != nil {
			last, err = r.call(c, l.joined, last)
		} else {
			last, err = r.descend(c, l.joined[0], last)
		}
		if err != nil {
			return 0, err
		}
	}
	return last, nil
}

// kinds are the types of the arrays, each once.
func (x *exchange) kinds() (list []int64) {
	for _, s := range x.arrays {
		if !slices.Contains(list, s.element) {
			list = append(list, s.element)
		}
	}
	return list
}

// call makes one call of exchanges of one kind.
func (r *rewriter) call(c *computation, joined []*instruction, after int64) (last int64, err error) {
	first := r.exchanges[joined[0]]
	call := Call{Site: int64(len(r.found.Calls)), Target: first.target, GroupSize: int(first.groups.size), Computation: c.name}
	var operands, control []int64
	var taken, given []shape
	for _, in := range joined {
		x := r.exchanges[in]
		into, from := x.sides()
		operands, taken, given = append(operands, x.give(c, into)...), append(taken, into...), append(given, from...)
		control = append(control, in.control...)
		call.Instructions = append(call.Instructions, in.name+r.where(in))
	}
	call.Arrays = len(taken)
	for _, s := range taken {
		call.Bytes += s.elements() * types[s.element].bytes
	}
	attributes := []string{fmt.Sprintf("site = %d : i64", call.Site)}
	switch first.target {
	case CollectivePermute:
		attributes = append(attributes, "pairs = "+numbers(first.pairs))
	case AllReduce, ReduceScatter:
		attributes = append(attributes, fmt.Sprintf("op = %d : i64", first.op))
		fallthrough
	default:
		attributes = append(attributes, "groups = "+numbers(first.groups.members), fmt.Sprintf("group_size = %d : i64", first.groups.size))
	}
	extra := appendBytes(nil, fieldTarget, first.target)
	extra = appendBytes(extra, fieldBackendConfig, "{"+strings.Join(attributes, ", ")+"}")
	extra = appendNumber(extra, fieldAPIVersion, typedFFI)
	extra = appendNumber(extra, fieldSideEffect, 1)
	extra = appendNumber(extra, fieldConstrainLayout, 1)
	for _, s := range append(taken, token) {
		extra = appendBytes(extra, fieldOperandShapes, s.marshal())
	}
	if metadata, ok := joined[0].find(fieldMetadata); ok {
		extra = append(extra, metadata.raw...)
	}
	made := c.add("custom-call", strings.TrimPrefix(first.target, "lazo."), tupleOf(append(slices.Clone(given), token)...), append(operands, after), extra)
	made.control = control
	at := int64(0)
	for _, in := range joined {
		x := r.exchanges[in]
		_, from := x.sides()
		x.take(c, made.id, at, from)
		at += int64(len(from))
	}
	r.found.Calls = append(r.found.Calls, call)
	return c.element(made.id, int64(len(given)), token, "token").id, nil
}

// typedFFI is XLA's API_VERSION_TYPED_FFI.
const typedFFI = 4

// numbers is a list as MLIR's text has it.
func numbers(list []int64) string {
	if len(list) == 0 {
		return "array<i64>"
	}
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = fmt.Sprint(n)
	}
	return "array<i64: " + strings.Join(texts, ", ") + ">"
}

// sides are the arrays that the call of an exchange takes, and those that it gives.
func (x *exchange) sides() (into, from []shape) {
	size := x.groups.size
	if x.in.opcode == "all-to-all" && x.tuple {
		all := array(x.arrays[0].element, append([]int64{size}, x.arrays[0].dims...)...)
		return []shape{all}, []shape{all}
	}
	for _, s := range x.arrays {
		divided := func() shape {
			dims := slices.Clone(s.dims)
			dims[x.axis] /= size
			return array(s.element, append([]int64{size}, dims...)...)
		}
		switch x.target {
		case AllGather:
			into, from = append(into, s), append(from, array(s.element, append([]int64{size}, s.dims...)...))
		case ReduceScatter:
			all := divided()
			into, from = append(into, all), append(from, array(s.element, all.dims[1:]...))
		case AllToAll:
			into, from = append(into, divided()), append(from, divided())
		default:
			into, from = append(into, s), append(from, s)
		}
	}
	return into, from
}

// give makes what the call takes of the exchange's operands.
func (x *exchange) give(c *computation, into []shape) (operands []int64) {
	switch {
	case x.in.opcode == "all-to-all" && x.tuple:
		one := array(x.arrays[0].element, append([]int64{1}, x.arrays[0].dims...)...)
		for _, id := range x.in.operands {
			operands = append(operands, c.add("reshape", "part", one, []int64{id}, nil).id)
		}
		return []int64{c.add("concatenate", "parts", into[0], operands, appendNumbers(nil, fieldDimensions, []int64{0})).id}
	case x.target == ReduceScatter || x.target == AllToAll:
		for i, id := range x.in.operands {
			operands = append(operands, c.divide(id, x.arrays[i], x.axis, x.groups.size).id)
		}
		return operands
	}
	return x.in.operands
}

// divide makes [parts, …] of an array: its axis cut into so many parts, which come first.
func (c *computation) divide(id int64, s shape, axis, parts int64) *instruction {
	cut := array(s.element, slices.Concat(s.dims[:axis], []int64{parts, s.dims[axis] / parts}, s.dims[axis+1:])...)
	made := c.add("reshape", "parts", cut, []int64{id}, nil)
	if axis == 0 {
		return made
	}
	order := []int64{axis}
	for i := range int64(len(cut.dims)) {
		if i != axis {
			order = append(order, i)
		}
	}
	return c.add("transpose", "parts_first", cut.inOrder(order), []int64{made.id}, appendNumbers(nil, fieldDimensions, order))
}

// join undoes divide; the instruction that it gives is not made yet: its opcode is reshape, and its operand is given.
func (c *computation) join(id int64, parts shape, axis int64) (operand int64) {
	if axis == 0 {
		return id
	}
	var order []int64
	for i := range axis {
		order = append(order, i+1)
	}
	order = append(order, 0)
	for i := axis + 1; i < int64(len(parts.dims)); i++ {
		order = append(order, i)
	}
	return c.add("transpose", "parts_in", parts.inOrder(order), []int64{id}, appendNumbers(nil, fieldDimensions, order)).id
}

// inOrder is the array with its axes in another order.
func (s shape) inOrder(order []int64) shape {
	moved := array(s.element)
	for _, axis := range order {
		moved.dims = append(moved.dims, s.dims[axis])
	}
	return moved
}

// element takes one of a tuple.
func (c *computation) element(of, at int64, s shape, name string) *instruction {
	return c.add("get-tuple-element", name, s, []int64{of}, appendNumber(nil, fieldTupleIndex, at))
}

// take makes of what the call gives, from its result at on, what the exchange gave, under the number that it had.
func (x *exchange) take(c *computation, call, at int64, from []shape) {
	size := x.groups.size
	// Each result is an instruction that is still to be made: its opcode, its operand and its other fields.
	type result struct {
		opcode  string
		operand int64
		extra   []byte
		shape   shape
	}
	var results []result
	switch {
	case x.in.opcode == "all-to-all" && x.tuple:
		all := c.element(call, at, from[0], "parts").id
		one := array(from[0].element, append([]int64{1}, x.arrays[0].dims...)...)
		for i := range size {
			results = append(results, result{"reshape", c.slice(all, from[0], i, one).id, nil, x.arrays[i]})
		}
	default:
		for i, s := range from {
			index := appendNumber(nil, fieldTupleIndex, at+int64(i))
			if x.target != AllGather && x.target != AllToAll {
				results = append(results, result{"get-tuple-element", call, index, s})
				continue
			}
			all := c.element(call, at+int64(i), s, "parts").id
			whole := x.arrays[i].inRows()
			switch x.in.opcode {
			case "collective-broadcast": // what the first one of the group has
				all = c.slice(all, s, 0, array(s.element, append([]int64{1}, whole.dims...)...)).id
			default:
				if x.target == AllGather {
					whole.dims = slices.Clone(whole.dims)
					whole.dims[x.axis] *= size
				}
				all = c.join(all, s, x.axis)
			}
			results = append(results, result{"reshape", all, nil, whole})
		}
	}
	if !x.tuple {
		x.in.become(results[0].opcode, []int64{results[0].operand}, results[0].extra)
		return
	}
	var parts []int64
	for _, y := range results {
		parts = append(parts, c.add(y.opcode, x.in.name, y.shape, []int64{y.operand}, y.extra).id)
	}
	x.in.become("tuple", parts, nil)
}

// slice takes the part i of the first axis.
func (c *computation) slice(of int64, s shape, i int64, part shape) *instruction {
	var extra []byte
	for axis, length := range s.dims {
		start := int64(0)
		if axis == 0 {
			start, length = i, i+1
		}
		limits := appendNumber(nil, fieldSliceStart, start)
		limits = appendNumber(appendNumber(limits, fieldSliceLimit, length), fieldSliceStride, 1)
		extra = appendBytes(extra, fieldSliceDimensions, limits)
	}
	return c.add("slice", "part", part, []int64{of}, extra)
}

// descend leads the chain through an instruction that calls computations with exchanges.
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

// calling makes an instruction that gives a tuple of a result and a token of one that gave the result.
func (r *rewriter) calling(c *computation, in *instruction, operands, computations []int64) (last int64) {
	made := c.add(in.opcode, in.name, tupleOf(in.shape, token), operands, nil)
	made.inherit(in, computations)
	in.become("get-tuple-element", []int64{made.id}, appendNumber(nil, fieldTupleIndex, 0))
	return c.element(made.id, 1, token, "token").id
}

// inherit gives an instruction what another one had beside its shape, its operands and what it called.
func (in *instruction) inherit(from *instruction, computations []int64) {
	in.called, in.control = computations, from.control
	for _, f := range from.rest {
		if f.number != fieldOriginalValue { // it has the form of the shape
			in.rest = append(in.rest, f)
		}
	}
}

// loop leads the chain through a loop: its tuple has one element more.
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

// extended is a tuple with a token behind its elements.
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

// shortened makes of an instruction, which gave a tuple, the tuple of all elements but the last of another one; and
// gives that last one, a token.
func (c *computation) shortened(in *instruction, of int64) (last int64) {
	var elements []int64
	for i, s := range in.shape.tuple {
		elements = append(elements, c.element(of, int64(i), s, in.name).id)
	}
	last = c.element(of, int64(len(in.shape.tuple)), token, "token").id
	in.become("tuple", elements, nil)
	return last
}

// reform has a computation take a token and give it back.
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
	// The chain goes by where instructions stand.
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

// loopByTest leads the chain through a loop whose condition exchanges, or which is over one array. A condition gives no
// token back, so it becomes a call before the loop and one at the end of its body, and the loop carries what it found.
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
