package mpi

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

// two is a program of one call with an array of 4 numbers on two ranks.
func two(kind, attrs string) exchange {
	shape := []pjrt.Shape{{DType: pjrt.Float32, Dims: []int{4}}}
	return exchange{kind, attrs, shape, shape, false}
}

// Each rank refuses a wrong call before it sends anything, with the reason.
func TestWrongCallsAreRefused(t *testing.T) {
	const site, groups = "site = 5 : i64, ", "groups = array<i64: 0, 1>, group_size = 2 : i64"
	single := []pjrt.Shape{{DType: pjrt.Float32, Dims: []int{4}}}
	rows := []struct {
		e    exchange
		want string
	}{
		{two("all_reduce", "op = 0 : i64, "+groups), "all_reduce, collective -1 of the program: expected an attribute site of type i64, got none"},
		{two("all_reduce", "site = 5 : i32, op = 0 : i64, "+groups), "expected an attribute site of type i64, got none"},
		{two("all_reduce", site+groups), "collective 5 of the program: expected an attribute op of type i64, got none"},
		{two("all_reduce", site+"op = 6 : i64, "+groups), "attribute op is 6, expected 0 (sum) to 5 (or)"},
		{two("all_reduce", site+"op = 4 : i64, "+groups), "argument 0 is f32[4], which has no and"},
		{two("all_reduce", site+"op = 0 : i64, group_size = 2 : i64"), "expected an attribute groups of type array<i64>, got none"},
		{two("all_reduce", site+"op = 0 : i64, groups = array<i64: 0, 1>"), "expected an attribute group_size of type i64, got none"},
		{two("all_reduce", site+"op = 0 : i64, groups = array<i64: 0, 1, 2, 3>, group_size = 4 : i64"), "4 members in groups of 4, expected each of the 2 ranks once, in groups of one size: " +
			"was the program compiled for another number of processes?"},
		{two("all_reduce", site+"op = 0 : i64, groups = array<i64>, group_size = 2 : i64"), "0 members in groups of 2"},
		{two("all_reduce", site+"op = 0 : i64, groups = array<i64: 0, 0>, group_size = 2 : i64"), "rank 0 stands 2 times in the groups, expected once"},
		{two("all_gather", site+groups), "argument 0 is f32[4] and its result f32[4], in groups of 2: they do not fit"},
		{two("reduce_scatter", site+"op = 0 : i64, "+groups), "they do not fit"},
		{two("all_to_all", site+groups), "they do not fit"},
		{exchange{"all_reduce", site + "op = 0 : i64, " + groups, single, []pjrt.Shape{{DType: pjrt.Int32, Dims: []int{4}}}, false}, "argument 0 is f32[4] and its result s32[4]"},
		{exchange{"all_reduce", site + "op = 0 : i64, " + groups, []pjrt.Shape{{DType: pjrt.Bool, Dims: []int{4}}}, []pjrt.Shape{{DType: pjrt.Bool, Dims: []int{4}}}, false},
			"argument 0 is pred[4], which has no sum"},
		{two("collective_permute", "site = 5 : i64"), "expected an attribute pairs of type array<i64>, got none"},
		{two("collective_permute", site+"pairs = array<i64: 0>"), "1 numbers in pairs, expected sources and targets in turns"},
		{two("collective_permute", site+"pairs = array<i64: 0, 2>"), "pair 0 to 2, expected ranks of 2"},
		{two("collective_permute", site+"pairs = array<i64: 0, 1, 1, 1>"), "pair 1 to 1 has the source or the target of another pair"},
	}
	onRanks(t, 2, func(t *testing.T, w *World) {
		for _, row := range rows {
			args := []pjrt.Array{{Shape: row.e.in[0], Data: make([]byte, 4*row.e.in[0].DType.Size())}}
			_, err := tryRun(t, compile(t, row.e.text()), args...)
			assert.ErrorContains(t, err, row.want, row.e.attrs)
			assert.ErrorContains(t, err, "mpi: rank ")
		}
		text := strings.NewReplacer(", %t)", ")", ", !stablehlo.token)", ")", "%r:2", "%r:1").Replace(two("all_reduce", site+"op = 0 : i64, "+groups).text())
		_, err := tryRun(t, compile(t, text), pjrt.Array{Shape: single[0], Data: make([]byte, 16)})
		assert.ErrorContains(t, err, "the last argument and result are f32 and f32, expected tokens")
		e := w.Exchanges()
		assert.Equal(t, e.Begun, e.Ended)
	})
}

// MPI's errors are errors of the program's run, with the rank and the collective.
func TestErrorsOfMPIAreTheRuns(t *testing.T) {
	onRanks(t, 2, func(t *testing.T, w *World) {
		n := []int{100, 50}[w.Rank()] // more is sent than expected
		shape := []pjrt.Shape{{DType: pjrt.Float32, Dims: []int{n}}}
		e := exchange{"collective_permute", "site = 12 : i64, pairs = array<i64: 0, 1>", shape, shape, false}
		_, err := tryRun(t, compile(t, e.text()), pjrt.Array{Shape: shape[0], Data: make([]byte, 4*n)})
		if w.Rank() == 0 {
			require.NoError(t, err)
			return
		}
		require.ErrorContains(t, err, "mpi: rank 1 of 2: collective_permute, collective 12 of the program: MPI_")
		assert.Regexp(t, regexp.MustCompile(`(?i)truncat`), err.Error())
		t.Log(err)
	})
}

// Two programs that exchange at once are refused. Exchanges reports the exchange in progress.
func TestTwoProgramsAtOnce(t *testing.T) {
	onRanks(t, 2, func(t *testing.T, w *World) {
		e := compile(t, two("all_reduce", "site = 1 : i64, op = 0 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64").text())
		other := compile(t, two("all_reduce", "site = 2 : i64, op = 0 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64").text())
		x := pjrt.Array{Shape: pjrt.Shape{DType: pjrt.Float32, Dims: []int{4}}, Data: pjrt.Bytes([]float32{1, 2, 3, 4})}
		if w.Rank() == 1 {
			require.NoError(t, w.Barrier()) // rank 0 has seen the exchange
			run(t, e, x)
			return
		}
		ended := make(chan error)
		go func() {
			_, err := tryRun(t, e, x)
			ended <- err
		}()
		require.Eventually(t, func() bool { return w.Exchanges().Begun == 1 }, time.Minute, time.Millisecond)
		now := w.Exchanges()
		assert.Zero(t, now.Ended)
		assert.Equal(t, "all_reduce", now.Kind)
		assert.EqualValues(t, 1, now.Site)
		assert.EqualValues(t, 16, now.Bytes)
		assert.Positive(t, now.Since)
		_, err := tryRun(t, other, x)
		assert.ErrorContains(t, err, "mpi: rank 0 of 2: all_reduce, collective 2 of the program: collective 1 (all_reduce) is under way: two programs run at once")
		require.NoError(t, w.Barrier())
		require.NoError(t, <-ended)
		assert.EqualValues(t, 1, w.Exchanges().Ended)
	})
}

// A process that has left its job cannot exchange.
func TestAfterFinalize(t *testing.T) {
	onRanks(t, 2, func(t *testing.T, w *World) {
		e := compile(t, two("all_reduce", "site = 1 : i64, op = 0 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64").text())
		require.NoError(t, w.Finalize())
		_, err := tryRun(t, e, pjrt.Array{Shape: pjrt.Shape{DType: pjrt.Float32, Dims: []int{4}}, Data: make([]byte, 16)})
		require.ErrorContains(t, err, "this process is in no job of MPI, or has left it")
		for what, err := range map[string]error{"maximum": w.Max([]int64{1}), "sum": w.Sum([]float32{1}), "broadcast": w.Broadcast(0, []byte{1}), "barrier": w.Barrier(), "Finalize": w.Finalize()} {
			require.ErrorIs(t, err, ErrFinalized, what)
		}
		_, err = w.AllGather([]byte{1})
		require.ErrorIs(t, err, ErrFinalized)
		_, err = w.Library().Init()
		require.ErrorIs(t, err, ErrTwice)
	})
}

// Faults in Go stay Go panics: the library's handlers do not take their signals.
func TestFaultsOfGoStayGos(t *testing.T) {
	onRanks(t, 2, func(t *testing.T, w *World) {
		require.PanicsWithError(t, "runtime error: invalid memory address or nil pointer dereference", func() {
			var none *World
			none.warnings = nil
		})
		require.Error(t, w.Broadcast(2, nil))
		require.Error(t, w.Broadcast(-1, nil))
	})
}
