package spmd

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Line returns the calls of a module, computation by computation, in the order of their tokens. It fails if they are
// not in one chain, or if part of an exchange remains.
func Line(t testing.TB, rewritten []byte) (line []string) {
	t.Helper()
	m, err := parseModule(rewritten)
	require.NoError(t, err)
	for _, f := range m.rest {
		require.NotContains(t, []int{fieldOutputSharding, fieldParameterShardings, fieldDeviceAssignment, fieldAutoPartitioning}, int(f.number))
	}
	names := map[string]bool{}
	for _, c := range m.computations {
		links := map[int64]*instruction{} // by the token that they take
		tokens := []*instruction{}
		for _, in := range c.instructions {
			require.False(t, isExchange(in.opcode), "%s is left", in.name)
			require.NotContains(t, []string{"partition-id", "replica-id"}, in.opcode)
			require.Zero(t, in.channel, in.name)
			require.False(t, names[in.name], "two instructions are named %s", in.name)
			names[in.name] = true
			if in.opcode == "get-tuple-element" {
				at, _ := fieldsOf(in.extra)
				index, _ := in.find(fieldTupleIndex) // none is 0
				for _, f := range at {
					if f.number == fieldTupleIndex {
						index = f
					}
				}
				of := c.byID[in.operands[0]].shape
				require.Less(t, int(index.value), len(of.tuple), in.name)
				require.Equal(t, of.tuple[index.value].dims, in.shape.dims, in.name)
				require.Equal(t, of.tuple[index.value].element, in.shape.element, in.name)
			}
			for _, id := range in.operands {
				if c.byID[id].shape.element == typeToken && in.opcode != "tuple" {
					require.Nil(t, links[id], "%s and another one take one token", in.name)
					links[id] = in
				}
			}
			if in.opcode == "after-all" || in.opcode == "parameter" && in.shape.element == typeToken {
				tokens = append(tokens, in)
			}
			if target, ok := in.find(fieldTarget); ok && strings.HasPrefix(string(target.data), "lazo.") && string(target.data) != Rank {
				config, _ := in.find(fieldBackendConfig)
				line = append(line, string(target.data)+" "+string(config.data))
				require.Equal(t, int64(typeToken), c.byID[in.operands[len(in.operands)-1]].shape.element, in.name)
				require.Equal(t, int64(typeToken), in.shape.tuple[len(in.shape.tuple)-1].element, in.name)
			}
		}
		require.LessOrEqual(t, len(tokens), 1, c.name)
	}
	return line
}

// Loops counts a module's loops with a token; it fails if a loop's shapes differ from those of its computations.
func Loops(t testing.TB, rewritten []byte) (loops int) {
	t.Helper()
	m, err := parseModule(rewritten)
	require.NoError(t, err)
	for _, c := range m.computations {
		for _, in := range c.instructions {
			if in.opcode != "while" {
				continue
			}
			if in.shape.tuple[len(in.shape.tuple)-1].element == typeToken {
				loops++
			}
			for _, id := range in.called {
				require.Equal(t, in.shape.marshal(), m.byID[id].parameters()[0].shape.marshal())
			}
			body := m.byID[in.called[slices.IndexFunc(in.called, func(id int64) bool { return len(m.byID[id].byID[m.byID[id].root].shape.tuple) > 0 })]]
			require.Equal(t, in.shape.marshal(), body.byID[body.root].shape.marshal())
		}
	}
	return loops
}

// Copies returns the names of copies of arrays larger than above bytes in a compiled program.
func Copies(t testing.TB, compiled []byte, above int64) (names []string) {
	t.Helper()
	fields, err := fieldsOf(compiled) // HloModuleProtoWithConfig
	require.NoError(t, err)
	module, err := fields[0].bytes()
	require.NoError(t, err)
	parts, err := fieldsOf(module)
	require.NoError(t, err)
	var unscheduled []byte
	for _, f := range parts {
		if f.number != fieldSchedule {
			unscheduled = append(unscheduled, f.raw...)
		}
	}
	m, err := parseModule(unscheduled)
	require.NoError(t, err)
	for _, c := range m.computations {
		for _, in := range c.instructions {
			if s := in.shape; in.opcode == "copy" && s.elements()*types[s.element].bytes > above {
				names = append(names, in.name)
			}
		}
	}
	return names
}

// Exchanges returns the exchanges of a joined module, with their numbers of arrays. It fails if one is between
// partitions.
func Exchanges(t testing.TB, joined []byte) (list []string) {
	t.Helper()
	m, err := parseModule(joined)
	require.NoError(t, err)
	for _, c := range m.computations {
		for _, in := range c.instructions {
			require.Zero(t, in.channel, in.name)
			require.NotEqual(t, "partition-id", in.opcode)
			_, global := in.find(fieldGlobalIDs)
			require.False(t, global, in.name)
			if isExchange(in.opcode) {
				list = append(list, fmt.Sprintf("%s of %d", in.opcode, len(in.operands)))
			}
		}
	}
	return list
}

// Many is a module with each kind of exchange.
var Many = many
