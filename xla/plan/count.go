package plan

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tally is what one run of a computation costs on one device.
type tally struct {
	matrix          map[string]float64 // FLOPs of products and convolutions, by the type of their operands
	vector          float64            // FLOPs of everything else
	transcendentals float64
	bytes           float64 // read and written in the device's memory
	exchanges       map[exchangeKey]float64
	uncounted       map[string]float64 // operations whose FLOPs are not known, and how often they run
	loops           map[string]bool    // loops of which nobody knows how often they run
}

func newTally() *tally {
	return &tally{matrix: map[string]float64{}, exchanges: map[exchangeKey]float64{}, uncounted: map[string]float64{}, loops: map[string]bool{}}
}

// add counts another tally so many times.
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

// counter walks over a module. What one computation costs is found out once, however often it is called.
type counter struct {
	m     *module
	mesh  []Axis
	done  map[countKey]*tally
	stack map[*computation]bool
	// begins are the computations in which an asynchronous collective begins, and first has the first one of each
	// channel that begins in none.
	begins map[*computation]bool
	first  map[string]*computation
}

type countKey struct {
	of *computation
	// inside: the computation is a fusion's, whose values are not in memory.
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

// transcendental operations are counted apart, one for each element: how many floating-point operations one takes is
// the device's affair.
var transcendental = map[string]bool{
	"erf": true, "exponential": true, "log": true, "logistic": true, "power": true, "sqrt": true, "cbrt": true, "rsqrt": true, "tanh": true, "sine": true,
	"cosine": true, "tan": true, "exponential-minus-one": true, "log-plus-one": true, "atan2": true, "acos": true, "acosh": true, "asin": true, "asinh": true,
	"atan": true, "atanh": true, "cosh": true, "sinh": true,
}

// elementwise operations count as one for each element, of whatever type: so does XLA.
var elementwise = map[string]bool{
	"abs": true, "add": true, "and": true, "ceil": true, "clamp": true, "compare": true, "complex": true, "convert": true, "count-leading-zeros": true,
	"divide": true, "floor": true, "imag": true, "is-finite": true, "maximum": true, "minimum": true, "multiply": true, "negate": true, "not": true, "or": true,
	"popcnt": true, "real": true, "reduce-precision": true, "remainder": true, "round-nearest-afz": true, "round-nearest-even": true, "select": true,
	"shift-left": true, "shift-right-arithmetic": true, "shift-right-logical": true, "sign": true, "stochastic-convert": true, "subtract": true, "xor": true,
}

// free operations name a value anew, and touch no memory.
var free = map[string]bool{
	"parameter": true, "constant": true, "tuple": true, "get-tuple-element": true, "bitcast": true, "after-all": true, "add-dependency": true,
	"optimization-barrier": true, "opt-barrier": true, "partition-id": true, "replica-id": true, "domain": true, "get-dimension-size": true,
}

// moved operations copy and compute nothing.
var moved = map[string]bool{
	"bitcast-convert": true, "broadcast": true, "concatenate": true, "copy": true, "dynamic-reshape": true, "dynamic-slice": true, "dynamic-update-slice": true,
	"gather": true, "iota": true, "pad": true, "reshape": true, "reverse": true, "set-dimension-size": true, "slice": true, "transpose": true,
	"copy-start": true, "copy-done": true, "infeed": true, "outfeed": true, "send": true, "send-done": true, "recv": true, "recv-done": true,
}

func (c *counter) instruction(t *tally, of *computation, i *instruction, inside bool) error {
	opcode := i.opcode
	switch {
	case free[opcode] || strings.HasSuffix(opcode, "-done") || strings.HasSuffix(opcode, "-update"):
		// What is begun by "-start" was counted there.
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

// calls counts what an instruction calls once.
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

// branches counts the branch with the most FLOPs, or the most bytes: a run takes one, and nobody knows which.
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

// loop counts the body and the condition as often as they run; once, with a word, where nobody can tell.
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

// each is what an operation that is applied to elements costs for one.
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

// apply counts the operation of an attribute so many times.
func (c *counter) apply(t *tally, i *instruction, attribute string, times float64) error {
	one, err := c.each(i, attribute)
	if err != nil {
		return err
	}
	t.add(one, max(times, 0))
	return nil
}

func (c *counter) arithmetic(t *tally, i *instruction, opcode string) error {
	out := i.shape.elements()
	need := func(n int) error {
		if len(i.operands) < n {
			return fmt.Errorf("instruction %q (line %d): %s with %d operands, expected %d at least", i.name, i.line, opcode, len(i.operands), n)
		}
		return nil
	}
	switch {
	case moved[opcode]:
	case transcendental[opcode]:
		t.transcendentals += out
	case elementwise[opcode]:
		t.vector += out
	case opcode == "dot":
		if err := need(2); err != nil {
			return err
		}
		contracted, err := contraction(i.operands[0].shape, i.attributes["lhs_contracting_dims"])
		if err != nil {
			return fmt.Errorf("instruction %q (line %d): %w", i.name, i.line, err)
		}
		t.matrix[i.operands[0].shape.dtype] += 2 * out * contracted
	case opcode == "convolution":
		if err := need(2); err != nil {
			return err
		}
		flops, err := convolution(i, i.operands[0].shape, i.operands[1].shape, i.shape)
		if err != nil {
			return fmt.Errorf("instruction %q (line %d): %w", i.name, i.line, err)
		}
		t.matrix[i.operands[0].shape.dtype] += flops
	case opcode == "reduce":
		if err := need(2); err != nil {
			return err
		}
		of := i.shape
		if len(of.parts) > 0 {
			of = of.parts[0]
		}
		return c.apply(t, i, "to_apply", i.operands[0].shape.elements()-of.elements())
	case opcode == "reduce-window":
		of := i.shape
		if len(of.parts) > 0 {
			of = of.parts[0]
		}
		size, err := windowSize(i)
		if err != nil {
			return err
		}
		return c.apply(t, i, "to_apply", of.elements()*(size-1))
	case opcode == "select-and-scatter":
		if err := need(2); err != nil {
			return err
		}
		size, err := windowSize(i)
		if err != nil {
			return err
		}
		source := i.operands[1].shape.elements()
		if err := c.apply(t, i, "select", source*(size-1)); err != nil {
			return err
		}
		return c.apply(t, i, "scatter", source)
	case opcode == "scatter":
		if err := need(3); err != nil {
			return err
		}
		return c.apply(t, i, "to_apply", i.operands[len(i.operands)-1].shape.elements())
	case opcode == "map":
		return c.apply(t, i, "to_apply", out)
	case opcode == "sort":
		if err := need(1); err != nil {
			return err
		}
		// The comparisons of a sort that halves: n log n of each row.
		s := i.operands[0].shape
		axes, err := numbers(i.attributes["dimensions"])
		if err != nil || len(axes) != 1 || axes[0] >= len(s.dims) {
			return fmt.Errorf("instruction %q (line %d): sort along %q of %s", i.name, i.line, i.attributes["dimensions"], s)
		}
		return c.apply(t, i, "to_apply", s.elements()*math.Ceil(math.Log2(float64(max(s.dims[axes[0]], 1)))))
	case opcode == "topk":
		if err := need(1); err != nil {
			return err
		}
		t.vector += i.operands[0].shape.elements()
	case opcode == "rng" || opcode == "rng-bit-generator":
		t.transcendentals += out
	case opcode == "triangular-solve":
		if err := need(2); err != nil {
			return err
		}
		a := i.operands[0].shape
		if len(a.dims) == 0 {
			return fmt.Errorf("instruction %q (line %d): %s of %s", i.name, i.line, opcode, a)
		}
		t.matrix[a.dtype] += out * float64(a.dims[len(a.dims)-1])
	case opcode == "cholesky":
		if err := need(1); err != nil {
			return err
		}
		a := i.operands[0].shape
		if len(a.dims) == 0 {
			return fmt.Errorf("instruction %q (line %d): %s of %s", i.name, i.line, opcode, a)
		}
		t.matrix[a.dtype] += a.elements() * float64(a.dims[len(a.dims)-1]) / 3
	case opcode == "fft":
		lengths, err := numbers(i.attributes["fft_length"])
		if err != nil {
			return err
		}
		size := 1.0
		for _, n := range lengths {
			size *= float64(n)
		}
		t.vector += 5 * out * math.Log2(max(size, 1))
	case opcode == "custom-call":
		return c.custom(t, i)
	default:
		at, _ := c.m.places.of(i)
		t.uncounted[strings.TrimSpace(opcode+" "+at.String())]++
	}
	return nil
}

// contraction is over how many terms each element of a product sums.
func contraction(lhs shape, axes string) (float64, error) {
	list, err := numbers(axes)
	if err != nil {
		return 0, err
	}
	terms := 1.0
	for _, a := range list {
		if a >= len(lhs.dims) {
			return 0, fmt.Errorf("a product over axis %d of %s", a, lhs)
		}
		terms *= float64(lhs.dims[a])
	}
	return terms, nil
}

// silent custom calls compute nothing.
var silent = map[string]bool{
	"AllocateBuffer": true, "AssumeGatherIndicesInBound": true, "Sharding": true, "SPMDFullToShardShape": true, "SPMDShardToFullShape": true,
	"MoveToHost": true, "MoveToDevice": true, "annotate_device_placement": true, "LayoutConstraint": true, "PinToDevice": true,
	"xla.sdy.FuncResultSharding": true, "GetTupleElement": true, "ResizeMinor": true, "BarrierTensor": true, "AsyncCollectiveStart": true, "AsyncCollectiveDone": true, "ConcatBitcast": true,
	"X64Combine": true, "X64SplitLow": true, "X64SplitHigh": true,
}

var contracting = regexp.MustCompile(`"lhs_contracting_dimensions":\[([0-9",]*)\]`)

// custom counts what vendors' libraries compute, where the instruction says enough.
func (c *counter) custom(t *tally, i *instruction) error {
	target := strings.Trim(i.attributes["custom_call_target"], `"`)
	first := i.shape
	if len(first.parts) > 0 {
		first = first.parts[0]
	}
	switch {
	case silent[target]:
		return nil
	case strings.HasPrefix(target, "__cublas$") && len(i.operands) >= 2:
		if found := contracting.FindStringSubmatch(i.attributes["backend_config"]); found != nil {
			terms, err := contraction(i.operands[0].shape, strings.ReplaceAll(found[1], `"`, ""))
			if err != nil {
				return fmt.Errorf("instruction %q (line %d): %w", i.name, i.line, err)
			}
			t.matrix[i.operands[0].shape.dtype] += 2 * first.elements() * terms
			return nil
		}
	case target == "__onednn$matmul" && len(i.operands) >= 2 && len(i.operands[0].shape.dims) > 0:
		dims := i.operands[0].shape.dims
		t.matrix[i.operands[0].shape.dtype] += 2 * first.elements() * float64(dims[len(dims)-1])
		return nil
	case strings.HasPrefix(target, "__cudnn$conv") && len(i.operands) >= 2:
		// A convolution and its two gradients are the same products: which of the three arrays are the operands differs.
		input, kernel, output := i.operands[0].shape, i.operands[1].shape, first
		switch target {
		case "__cudnn$convBackwardInput":
			input, output = first, i.operands[0].shape
		case "__cudnn$convBackwardFilter":
			kernel, output = first, i.operands[1].shape
		}
		flops, err := convolution(i, input, kernel, output)
		if err != nil {
			return fmt.Errorf("instruction %q (line %d): %w", i.name, i.line, err)
		}
		t.matrix[i.operands[0].shape.dtype] += flops
		return nil
	}
	at, _ := c.m.places.of(i)
	t.uncounted[strings.TrimSpace(fmt.Sprintf("custom-call %q %s", target, at))]++
	return nil
}

func operandBytes(i *instruction) float64 {
	var sum float64
	for _, o := range i.operands {
		if o.shape.space == 0 {
			sum += o.shape.bytes()
		}
	}
	return sum
}

// instructionBytes is what an instruction that is no fusion reads and writes in memory. What takes a part of an operand
// reads that part.
func instructionBytes(i *instruction) float64 {
	written := 0.0
	for _, r := range results(i) {
		if r.space == 0 {
			written += r.bytes()
		}
	}
	switch {
	case taking[strings.TrimSuffix(i.opcode, "-start")] && len(i.operands) > 0:
		read := 0.0
		if part := results(i); i.operands[0].shape.space == 0 && len(part) > 0 {
			read = part[0].bytes()
		}
		return read + written + operandBytes(&instruction{operands: i.operands[1:]})
	case i.opcode == "dynamic-update-slice" && len(i.operands) > 1:
		return 2 * i.operands[1].shape.bytes()
	case i.opcode == "scatter" && len(i.operands) > 2:
		return 3*i.operands[len(i.operands)-1].shape.bytes() + i.operands[len(i.operands)-2].shape.bytes()
	}
	return operandBytes(i) + written
}

// taking are operations that read the part of their first operand that they give.
var taking = map[string]bool{"dynamic-slice": true, "slice": true, "gather": true}

// results are the arrays that an instruction makes. One that goes on beside others gives its operands too, and a
// context of its own.
func results(i *instruction) []shape {
	leaves := i.shape.leaves()
	if !strings.HasSuffix(i.opcode, "-start") || !i.shape.tuple {
		return leaves
	}
	if i.opcode == "copy-start" { // result, operand, context
		return leaves[:min(1, len(leaves))]
	}
	return leaves[operandLeaves(i):]
}

// operandLeaves is how many of the first arrays of an instruction's result are its operands.
func operandLeaves(i *instruction) int {
	leaves := i.shape.leaves()
	n := 0
	for _, o := range i.operands {
		for _, l := range o.shape.leaves() {
			if n >= len(leaves) || !sameShape(leaves[n], l) {
				return 0
			}
			n++
		}
	}
	if n == len(leaves) { // the results alone, as of an all-reduce
		return 0
	}
	return n
}

// fusionBytes is what a fusion reads and writes: its operands, or the parts of them that it takes, and its result, or
// the part of it that it writes in place.
func (c *counter) fusionBytes(i *instruction) (float64, error) {
	called, err := c.m.called(i, "calls")
	if err != nil {
		return 0, err
	}
	if len(called) != 1 {
		return operandBytes(i) + i.shape.bytes(), nil
	}
	f := called[0]
	users := map[*instruction][]*instruction{}
	for _, inner := range f.instructions {
		for _, o := range inner.operands {
			users[o] = append(users[o], inner)
		}
	}
	var sum float64
	for n, o := range i.operands {
		if o.shape.space != 0 {
			continue
		}
		read := o.shape.bytes()
		if n < len(f.parameters) {
			if part, found := partRead(f.parameters[n], users); found {
				read = min(read, part)
			}
		}
		sum += read
	}
	for _, root := range roots(f.root) {
		switch {
		case root.shape.space != 0:
		case root.opcode == "dynamic-update-slice" && len(root.operands) > 1:
			sum += root.operands[1].shape.bytes()
		default:
			sum += root.shape.bytes()
		}
	}
	return sum, nil
}

// roots are the values that a fusion gives.
func roots(root *instruction) []*instruction {
	for root.opcode == "bitcast" && len(root.operands) == 1 {
		root = root.operands[0]
	}
	if root.opcode != "tuple" {
		return []*instruction{root}
	}
	var all []*instruction
	for _, o := range root.operands {
		for o.opcode == "bitcast" && len(o.operands) == 1 {
			o = o.operands[0]
		}
		all = append(all, o)
	}
	return all
}

// partRead is how many bytes of a parameter a fusion reads, if all that uses it takes parts of it.
func partRead(p *instruction, users map[*instruction][]*instruction) (float64, bool) {
	var sum float64
	todo := slices.Clone(users[p])
	of := p
	if len(todo) == 1 && todo[0].opcode == "bitcast" {
		of, todo = todo[0], users[todo[0]]
	}
	if len(todo) == 0 {
		return 0, false
	}
	for _, u := range todo {
		switch {
		case (u.opcode == "dynamic-slice" || u.opcode == "slice" || u.opcode == "gather") && u.operands[0] == of:
			sum += u.shape.bytes()
		case u.opcode == "dynamic-update-slice" && u.operands[0] == of && len(u.operands) > 1 && u.operands[1] != of: // written over in place
		default:
			return 0, false
		}
	}
	return sum, true
}

var knownTrips = regexp.MustCompile(`"known_trip_count":\{"n":"?(\d+)`)

// trips is how often a loop runs: as XLA says, or as its condition does, where it counts up to a constant.
func trips(i *instruction, body, condition *computation) (float64, bool) {
	if found := knownTrips.FindStringSubmatch(i.attributes["backend_config"]); found != nil {
		n, err := strconv.ParseFloat(found[1], 64)
		return n, err == nil
	}
	compare, operands := compared(condition.root)
	if compare == nil || len(operands) != 2 {
		return 0, false
	}
	direction := compare.attributes["direction"]
	at, isPlace := element(operands[0], condition)
	limit, isNumber := integer(operands[1])
	if !isPlace || !isNumber {
		if at, isPlace = element(operands[1], condition); !isPlace {
			return 0, false
		}
		if limit, isNumber = integer(operands[0]); !isNumber {
			return 0, false
		}
		direction = map[string]string{"GT": "LT", "GE": "LE"}[direction]
	}
	if len(i.operands) != 1 || i.operands[0].opcode != "tuple" || at >= len(i.operands[0].operands) {
		return 0, false
	}
	start, known := integer(i.operands[0].operands[at])
	if !known {
		return 0, false
	}
	step, known := stepOf(body, at)
	if !known || step < 1 {
		return 0, false
	}
	switch direction {
	case "LT":
	case "LE":
		limit++
	default:
		return 0, false
	}
	return math.Max(0, math.Ceil(float64(limit-start)/float64(step))), true
}

// compared is the comparison that a condition ends with, and what it compares, as instructions of the condition.
func compared(root *instruction) (*instruction, []*instruction) {
	if root.opcode == "compare" {
		return root, root.operands
	}
	return nil, nil
}

// through passes over copies.
func through(i *instruction) *instruction {
	for n := 0; n < maxDepth && (i.opcode == "copy" || i.opcode == "bitcast" || i.opcode == "convert") && len(i.operands) == 1; n++ {
		i = i.operands[0]
	}
	return i
}

// element is the place of the loop's value that an instruction takes.
func element(i *instruction, of *computation) (int, bool) {
	i = through(i)
	if i.opcode != "get-tuple-element" || len(i.operands) != 1 || i.operands[0].opcode != "parameter" || i.operands[0] != of.parameters[0] {
		return 0, false
	}
	n, err := strconv.Atoi(i.attributes["index"])
	return n, err == nil && n >= 0
}

func integer(i *instruction) (int64, bool) {
	i = through(i)
	if i.opcode != "constant" {
		return 0, false
	}
	n, err := strconv.ParseInt(i.literal, 10, 62)
	return n, err == nil
}

// stepOf is what a body adds to a value.
func stepOf(body *computation, at int) (int64, bool) {
	if body.root.opcode != "tuple" || at >= len(body.root.operands) {
		return 0, false
	}
	sum := through(body.root.operands[at])
	if sum.opcode != "add" || len(sum.operands) != 2 {
		return 0, false
	}
	for k := range 2 {
		place, is := element(sum.operands[k], body)
		if step, known := integer(sum.operands[1-k]); is && known && place == at {
			return step, true
		}
	}
	return 0, false
}
