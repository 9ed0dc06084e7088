package spmd

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// made returns a module: build fills the entry computation and returns its root.
func made(build func(m *module, c *computation) (root int64)) []byte {
	m := &module{byID: map[int64]*computation{}}
	c := m.addComputation("main")
	c.root = build(m, c)
	m.rest = []field{{raw: appendBytes(nil, fieldModuleName, "made")}, {raw: appendNumber(nil, fieldEntry, c.id)}}
	if err := m.sort(); err != nil {
		panic(err)
	}
	return m.marshal()
}

const f32, f64 = 11, 12

func (c *computation) parameter(n int64, s shape) int64 {
	return c.add("parameter", "p", s, nil, appendNumber(nil, fieldParameterNumber, n)).id
}

// by makes a reducing computation.
func (m *module) by(opcode string, element int64) int64 {
	c := m.addComputation(opcode)
	a, b := c.parameter(0, array(element)), c.parameter(1, array(element))
	c.root = c.add(opcode, opcode, array(element), []int64{a, b}, nil).id
	return c.id
}

// members is a CollectiveDeviceListProto.
func members(lists ...[]int64) []byte {
	var list []byte
	for _, one := range lists {
		list = appendBytes(list, fieldGroups, appendNumbers(nil, fieldReplicas, one))
	}
	return appendBytes(nil, fieldDeviceList, list)
}

// reduce is an all-reduce.
func (c *computation) reduce(name string, of, by int64, groups ...[]int64) *instruction {
	in := c.add("all-reduce", name, c.byID[of].shape, []int64{of}, appendNumber(members(groups...), fieldGlobalIDs, 1))
	in.called, in.channel = []int64{by}, 1
	return in
}

func (c *computation) tuple(ids ...int64) int64 {
	var shapes []shape
	for _, id := range ids {
		shapes = append(shapes, c.byID[id].shape)
	}
	return c.add("tuple", "results", tupleOf(shapes...), ids, nil).id
}

func TestRewrite_refuses(t *testing.T) {
	for name, row := range map[string]struct {
		build func(m *module, c *computation, a int64) *instruction
		err   string
	}{
		"another opcode": {func(_ *module, c *computation, a int64) *instruction {
			in := c.add("send", "x", tupleOf(array(f32, 4), token), []int64{a}, nil)
			in.channel = 3
			return in
		}, "send x.lazo.0.2 of main.lazo.0: the exchange is not supported"},
		"a half": {func(m *module, c *computation, a int64) *instruction {
			in := c.reduce("x", a, m.by("add", f32))
			in.opcode = "all-reduce-start"
			return in
		}, "all-reduce-start x.lazo.0.2 of main.lazo.0: the exchange is not supported"},
		"ragged": {func(_ *module, c *computation, a int64) *instruction {
			return c.add("ragged-all-to-all", "x", array(f32, 4), []int64{a}, nil)
		}, "the exchange is not supported"},
		"a channel": {func(_ *module, c *computation, a int64) *instruction {
			in := c.add("negate", "x", array(f32, 4), []int64{a}, nil)
			in.channel = 7
			return in
		}, "negate x.lazo.0.2 of main.lazo.0 has the channel 7"},
		"a field": {func(m *module, c *computation, a int64) *instruction {
			in := c.reduce("x", a, m.by("add", f32))
			in.extra = appendBytes(in.extra, 777, "new groups")
			return in
		}, "its field 777 is not supported"},
		"replicas": {func(m *module, c *computation, a int64) *instruction {
			in := c.reduce("x", a, m.by("add", f32))
			in.channel = 0
			return in
		}, "it has no channel, and so is between replicas; expected an exchange between the 4 partitions"},
		"groups of replicas": {func(m *module, c *computation, a int64) *instruction {
			in := c.reduce("x", a, m.by("add", f32))
			in.extra = members([]int64{0, 1})
			return in
		}, "its groups [[0 1]] are of replicas; expected one replica"},
		"another sum": {func(m *module, c *computation, a int64) *instruction {
			return c.reduce("x", a, m.by("subtract", f32))
		}, "it reduces by the computation subtract.lazo.1, whose root is subtract; expected add, multiply, minimum, maximum, \"and\" or \"or\" of its two parameters"},
		"floats that have no and": {func(m *module, c *computation, a int64) *instruction {
			return c.reduce("x", a, m.by("and", f32))
		}, "and of f32 is not exchanged"},
		"a sum in another type": {func(m *module, c *computation, a int64) *instruction {
			return c.reduce("x", a, m.by("add", f64))
		}, "it reduces f32 in another type"},
		"groups without one": {func(m *module, c *computation, a int64) *instruction {
			return c.reduce("x", a, m.by("add", f32), []int64{0, 1, 2})
		}, "its groups [[0 1 2]] do not contain each of 4 partitions"},
		"groups with one twice": {func(m *module, c *computation, a int64) *instruction {
			return c.reduce("x", a, m.by("add", f32), []int64{0, 1}, []int64{1, 2})
		}, "its groups [[0 1] [1 2]] name the partition 1, expected each of 4 once"},
		"groups of different sizes": {func(m *module, c *computation, a int64) *instruction {
			return c.reduce("x", a, m.by("add", f32), []int64{0, 1, 2}, []int64{3})
		}, "its groups [[0 1 2] [3]] have different sizes"},
		"small integers": {func(m *module, c *computation, a int64) *instruction {
			return c.reduce("x", c.add("convert", "y", array(21, 4), []int64{a}, nil).id, m.by("add", 21))
		}, "arrays of XLA's type 21 are not exchanged"},
		"a shape": {func(_ *module, c *computation, a int64) *instruction {
			in := c.add("all-gather", "x", array(f32, 4), []int64{a}, appendNumber(appendNumbers(nil, fieldDimensions, []int64{0}), fieldGlobalIDs, 1))
			in.channel = 1
			return in
		}, "its result 0 has the shape [4], expected [16]"},
		"parts": {func(m *module, c *computation, a int64) *instruction {
			in := c.reduce("x", c.add("slice", "y", array(f32, 3), []int64{a}, nil).id, m.by("add", f32))
			in.opcode, in.extra = "reduce-scatter", append(in.extra, appendNumbers(nil, fieldDimensions, []int64{0})...)
			return in
		}, "the axis 0 of [3] is not divided by groups of 4"},
		"a pair twice": {func(_ *module, c *computation, a int64) *instruction {
			var pairs []byte
			for range 2 {
				pairs = appendBytes(pairs, fieldPairs, appendNumber(nil, fieldDestination, 1))
			}
			in := c.add("collective-permute", "x", array(f32, 4), []int64{a}, pairs)
			in.channel = 1
			return in
		}, "the pair 0 to 1 is not one of 4 partitions, or names one twice"},
		"a caller": {func(m *module, c *computation, a int64) *instruction {
			inner := m.addComputation("inner")
			p := inner.parameter(0, array(f32, 4))
			inner.root = inner.reduce("y", p, m.by("add", f32)).id
			in := c.add("map", "x", array(f32, 4), []int64{a}, nil)
			in.called = []int64{inner.id}
			return in
		}, "map x.lazo.0.2 of main.lazo.0 calls a computation that exchanges; expected while, call or conditional"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Rewrite(made(func(m *module, c *computation) int64 {
				return row.build(m, c, c.parameter(0, array(f32, 4))).id
			}), 4)
			require.ErrorIs(t, err, ErrUnsupported)
			require.ErrorContains(t, err, row.err)
			require.ErrorContains(t, err, "spmd: rewrite made: the exchange is not supported: ")
		})
	}
}

// many has everything that is rewritten: joined sums, each kind of exchange, a loop, a call and a conditional.
func many() []byte {
	return made(func(m *module, c *computation) int64 {
		add := m.by("add", f32)
		a := c.parameter(0, array(f32, 4, 4))
		n := c.parameter(1, array(4))
		kind := func(opcode string, s shape, of int64, extra []byte) int64 {
			in := c.add(opcode, opcode, s, []int64{of}, appendNumber(extra, fieldGlobalIDs, 1))
			in.channel = 2
			return in.id
		}
		axis := func(n int64) []byte { return appendNumbers(nil, fieldDimensions, []int64{n}) }
		all := kind("all-gather", array(f32, 4, 8), c.reduce("sum", a, add).id, axis(1))
		all = kind("all-to-all", array(f32, 4, 8), all, append(axis(1), members([]int64{1, 0})...))
		scattered := c.add("reduce-scatter", "scattered", array(f32, 2, 8), []int64{all}, appendNumber(axis(0), fieldGlobalIDs, 1))
		scattered.called, scattered.channel = []int64{add}, 1
		moved := kind("collective-permute", array(f32, 2, 8), scattered.id, appendBytes(nil, fieldPairs, appendNumber(nil, fieldDestination, 1)))
		shared := kind("collective-broadcast", array(f32, 2, 8), moved, nil)
		both := c.add("all-to-all", "both", tupleOf(array(f32, 2, 8), array(f32, 2, 8)), []int64{moved, shared}, nil)
		both.channel = 9

		inner := func(name string, s shape, build func(c *computation, p int64) int64) int64 {
			made := m.addComputation(name)
			made.root = build(made, made.parameter(0, s))
			return made.id
		}
		summed := func(c *computation, p int64) int64 { return c.reduce("inner", p, add).id }
		s := array(f32, 4, 4)
		call := c.add("call", "call", s, []int64{a}, nil)
		call.called = []int64{inner("called", s, summed)}
		branch := c.add("conditional", "branch", s, []int64{n, call.id, a}, nil)
		branch.called = []int64{inner("first", s, summed), inner("second", s, func(_ *computation, p int64) int64 { return p })}
		state := tupleOf(s)
		loop := c.add("while", "loop", state, []int64{c.tuple(branch.id)}, nil)
		loop.called = []int64{
			inner("body", state, func(c *computation, p int64) int64 {
				return c.tuple(c.reduce("inner", c.element(p, 0, s, "s").id, add).id)
			}),
			inner("test", state, func(c *computation, _ int64) int64 { return c.add("constant", "no", array(typePred), nil, nil).id }),
		}
		again := c.add("while", "again", s, []int64{c.element(loop.id, 0, s, "s").id}, nil)
		again.called = []int64{
			inner("sum", s, summed),
			inner("sums", s, func(c *computation, p int64) int64 {
				return c.add("compare", "more", array(typePred), []int64{c.reduce("inner", p, add).id}, nil).id
			}),
		}
		return c.tuple(both.id, again.id, c.add("partition-id", "id", array(typeU32), nil, nil).id, c.add("replica-id", "id", array(typeU32), nil, nil).id)
	})
}

func TestRewrite_many(t *testing.T) {
	rewritten, found, err := Rewrite(many(), 2)
	require.NoError(t, err)
	require.Len(t, Line(t, rewritten), 12)
	require.Equal(t, 12, found.Exchanges)
	require.Equal(t, 2, Loops(t, rewritten))
	m, err := parseModule(rewritten)
	require.NoError(t, err)
	// In the entry, the chain has seven exchanges, a call, the two branches of a conditional, a loop, a loop's test and
	// that loop.
	entry, taken := m.byID[m.entry], map[int64]int{}
	for _, in := range entry.instructions {
		for _, id := range in.operands {
			if entry.byID[id].shape.element == typeToken {
				taken[id]++
			}
		}
	}
	twice := 0
	for _, times := range taken {
		twice += times - 1
	}
	require.Len(t, taken, 12)
	require.Equal(t, 1, twice, "by the branches")
}

func FuzzRewrite(f *testing.F) {
	f.Add(many())
	f.Add(protowire.AppendTag(nil, fieldComputations, protowire.BytesType))
	f.Fuzz(func(t *testing.T, module []byte) {
		if out, _, err := Rewrite(module, 2); err == nil {
			if _, err := parseModule(out); err != nil {
				t.Fatal(err)
			}
		}
	})
}
