package spmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/xla/pjrt"
)

// partition gives the module of a program in testdata, for so many partitions.
func partition(t testing.TB, name string, partitions int) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".mlir"))
	require.NoError(t, err)
	program := strings.ReplaceAll(string(text), `"data"=2`, fmt.Sprintf(`"data"=%d`, partitions))
	module, err := Partition(openCPU(t, partitions), []byte(program), pjrt.CompileOptions{Partitions: partitions, SPMD: true, Shardy: true})
	require.NoError(t, err)
	return module
}

// lineOf gives the calls of a module, computation by computation, in the order of their tokens. It fails if they are
// not in one chain, or if anything of an exchange was left.
func lineOf(t testing.TB, rewritten []byte) (line []string) {
	t.Helper()
	m, err := parseModule(rewritten)
	require.NoError(t, err)
	for _, f := range m.rest {
		require.NotContains(t, []int{fieldOutputSharding, fieldParameterShardings, fieldDeviceAssignment, fieldAutoPartitioning}, int(f.number))
	}
	for _, c := range m.computations {
		links := map[int64]*instruction{} // by the token that they take
		tokens := []*instruction{}
		names := map[string]bool{}
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
			if target, ok := in.find(fieldTarget); ok && strings.HasPrefix(string(target.data), "lazo.") {
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

func TestRewrite_division(t *testing.T) {
	module := partition(t, "division", 2)
	for rank := range 2 {
		rewritten, found, err := Rewrite(module, rank, 2)
		require.NoError(t, err)
		require.Equal(t, []string{
			"lazo.all_reduce {site = 0 : i64, op = 0 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64}",
			"lazo.all_gather {site = 1 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64}",
		}, lineOf(t, rewritten))
		require.Equal(t, 2, found.Exchanges)
		require.Equal(t, Call{0, AllReduce, []string{"all-reduce (dot.1)"}, 1, 64, 2, "main.0_spmd"}, found.Calls[0])
	}
	_, _, err := Rewrite(module, 2, 2)
	require.EqualError(t, err, "spmd: rewrite for rank 2 of 2: expected a rank from 0 and fewer than the ranks")
	_, _, err = Rewrite(module, 2, 3)
	require.ErrorIs(t, err, ErrUnsupported)
	require.EqualError(t, err, "spmd: rewrite division: the exchange is not supported: all-reduce all-reduce of main.0_spmd (dot.1): its groups [[0 1]] have not each of 3 partitions")
}

func TestRewrite_loop(t *testing.T) {
	rewritten, found, err := Rewrite(partition(t, "loop", 4), 3, 4)
	require.NoError(t, err)
	require.Equal(t, []string{"lazo.all_reduce {site = 0 : i64, op = 0 : i64, groups = array<i64: 0, 1, 2, 3>, group_size = 4 : i64}"}, lineOf(t, rewritten))
	require.Equal(t, "region_0.0_spmd", found.Calls[0].Computation)
	m, err := parseModule(rewritten)
	require.NoError(t, err)
	loops := 0
	for _, c := range m.computations {
		for _, in := range c.instructions {
			if in.opcode != "while" {
				continue
			}
			loops++
			require.Len(t, in.shape.tuple, 5)
			require.Equal(t, token.element, in.shape.tuple[4].element)
			for _, id := range in.called {
				require.Equal(t, in.shape.marshal(), m.byID[id].parameters()[0].shape.marshal())
			}
			body := m.byID[in.called[slices.IndexFunc(in.called, func(id int64) bool { return len(m.byID[id].byID[m.byID[id].root].shape.tuple) > 0 })]]
			require.Equal(t, in.shape.marshal(), body.byID[body.root].shape.marshal())
		}
	}
	require.Equal(t, 1, loops)
}

func TestRewrite_eachKind(t *testing.T) {
	rewritten, _, err := Rewrite(partition(t, "each_kind", 2), 0, 2)
	require.NoError(t, err)
	require.Equal(t, []string{
		"lazo.all_to_all {site = 0 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64}",
		"lazo.all_gather {site = 1 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64}",
		"lazo.reduce_scatter {site = 2 : i64, op = 3 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64}",
		"lazo.collective_permute {site = 3 : i64, pairs = array<i64: 0, 1, 1, 0>}",
	}, lineOf(t, rewritten))
}
