package spmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnsupported reports an unknown exchange, or construct around one.
var ErrUnsupported = errors.New("the exchange is not supported")

type Summary struct {
	Exchanges int
	Calls     []Call
}

type Call struct {
	Site         int64
	Target       string
	Instructions []string
	Arrays       int
	InPlace      int
	Bytes        int64  // of all operands
	GroupSize    int    // partitions per group; 0 for pairs
	Computation  string // a loop's runs repeatedly
}

// Rewrite turns the result of pjrt.Client.Partition into the program of all ranks, one process per partition: a
// serialized HloModuleProto.
func Rewrite(partitioned []byte, ranks int) (rewritten []byte, found Summary, err error) {
	if ranks < 1 || ranks > most {
		return nil, Summary{}, fmt.Errorf("spmd: rewrite for %d ranks: expected 1 to %d", ranks, most)
	}
	r, err := newRewriter(partitioned, ranks)
	if err != nil {
		return nil, Summary{}, fmt.Errorf("spmd: rewrite: %w", err)
	}
	if err := r.rewrite(); err != nil {
		return nil, Summary{}, fmt.Errorf("spmd: rewrite %s: %w", r.name, err)
	}
	return r.marshal(), r.found, nil
}

func newRewriter(partitioned []byte, ranks int) (*rewriter, error) {
	m, err := parseModule(partitioned)
	if err != nil {
		return nil, err
	}
	return &rewriter{module: m, ranks: ranks, exchanges: map[*instruction]*exchange{}, holds: map[int64]bool{}, forms: map[int64]form{}}, nil
}

type rewriter struct {
	*module
	ranks     int
	replicas  bool // of one process
	exchanges map[*instruction]*exchange
	holds     map[int64]bool
	forms     map[int64]form // with a token
	found     Summary
}

type form string

const (
	carried  form = "the body of a loop"      // one more element
	tested   form = "the condition of a loop" // the same, returns none
	called   form = "a call"                  // one more parameter; returns (result, token)
	branched form = "a branch"                // takes (parameter, token); returns (result, token)
)

func (r *rewriter) readAll() error {
	err := r.module.sort()
	for _, c := range r.computations {
		if err == nil {
			err = r.read(c)
		}
	}
	return err
}

func (r *rewriter) sortAll() error {
	for _, c := range r.computations {
		if err := c.sort(); err != nil {
			return err
		}
	}
	return r.module.sort()
}

func (r *rewriter) rewrite() error {
	if err := r.readAll(); err != nil {
		return err
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
	return r.sortAll()
}

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

// The partition number is a call: a constant would make programs, and possibly sums, differ.
func (r *rewriter) read(c *computation) error {
	for _, in := range c.instructions {
		inner := slices.ContainsFunc(in.called, func(id int64) bool { return r.holds[id] })
		switch {
		case in.opcode == "partition-id" || in.opcode == "replica-id":
			if in.shape.element != typeU32 || len(in.shape.dims) > 0 {
				return fmt.Errorf("%w: %s %s of %s is not a u32", errMalformed, in.opcode, in.name, c.name)
			}
			if in.opcode == "partition-id" && r.replicas {
				in.become("replica-id", nil, nil)
				break
			}
			if in.opcode == "replica-id" {
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

type link struct {
	depth  int
	key    string
	joined []*instruction
}

// links returns a computation's exchanges and the callers of others by depth: the most exchanges on a path before.
// Equal depths are independent: sums of one kind are joined.
func (r *rewriter) links(c *computation) (links []*link) {
	depths := make(map[int64]int, len(c.instructions))
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
	return links
}

// chain orders a computation's exchanges, from the token after to the returned one.
func (r *rewriter) chain(c *computation, after int64) (last int64, err error) {
	last = after
	for _, l := range r.links(c) {
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

func (x *exchange) kinds() (list []int64) {
	for _, s := range x.arrays {
		if !slices.Contains(list, s.element) {
			list = append(list, s.element)
		}
	}
	return list
}

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
	if first.target == AllReduce {
		for i, s := range taken {
			if s.elements()*types[s.element].bytes > inPlaceAbove {
				extra = appendBytes(extra, fieldAliasing, appendNumber(appendNumbers(nil, fieldAliasedOutput, []int64{int64(i)}), fieldAliasedOperand, int64(i)))
				call.InPlace++
			}
		}
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

// Above this size in bytes a sum overwrites its operand, which saves MPI's copy.
const inPlaceAbove = 64 << 10

// API_VERSION_TYPED_FFI
const typedFFI = 4

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
