package managed_test

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/internal/shares"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/strategies"
)

// puts notes which values are moved to the device, and between them which are read.
type puts struct {
	strategies.Strategy
	order []string
}

func (p *puts) Put(name string, t *tensors.Tensor) (compute.Buffer, error) {
	p.order = append(p.order, "put "+name)
	return p.Strategy.Put(name, t)
}

// A state sharded over two processes is restored bit-identically, into a state without variables and into one with
// them. Each sharded value is read when it is moved, and not before. Values that are not moved yet can be saved again.
func TestRestore_readsWhatWasCutOneByOne(t *testing.T) {
	values := map[string][]float32{"a": {1, 2, 3, 4}, "b": {5, 6, 7, 8}, "c": {9, 10, 11, 12}}
	step := func(t *testing.T) *managed.Stepper {
		return stepper(t, managed.TestStep(func(b *managed.Builder) {
			for _, name := range slices.Sorted(maps.Keys(values)) {
				b.Scope().VariableWithValue(name, values[name]).NodeValue(b.Graph())
			}
			b.Metric("x", b.Field("x"))
		}))
	}
	on := func() *puts { return &puts{Strategy: strategies.Jit(plugintest.CPU(t))} }
	prepared := func(s strategies.Strategy) (*managed.State, func()) {
		state, err := managed.New(s)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, state.Close()) })
		return state, func() { require.NoError(t, step(t).Prepare(t.Context(), state, first(t, line(t, 1).Batches(1)))) }
	}
	saved, prepare := prepared(on())
	prepare()
	content, err := saved.Content(t.Context())
	require.NoError(t, err)
	dir := t.TempDir()
	zero, err := checkpoint.Open(dir, checkpoint.Options{LeaveSharded: true})
	require.NoError(t, err)
	one, err := checkpoint.Open(dir, checkpoint.Options{ReadOnly: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, errors.Join(zero.Close(), one.Close())) })
	at, err := zero.Begin(t.Context(), 1)
	require.NoError(t, err)
	both := [2]checkpoint.Content{content, {}}
	both[0].Tensors = nil
	for _, tensor := range content.Tensors {
		var all bytes.Buffer
		require.NoError(t, tensor.Write(&all))
		if tensor.Write = nil; len(tensor.Dims) != 1 || tensor.Dims[0] != 4 {
			tensor.Data = all.Bytes()
			both[0].Tensors = append(both[0].Tensors, tensor)
			continue
		}
		for rank := range both {
			tensor.Parts = []shares.Part{{Start: []int{2 * rank}, Dims: []int{2}, Data: all.Bytes()[8*rank : 8*rank+8]}}
			both[rank].Tensors = append(both[rank].Tensors, tensor)
		}
	}
	for rank := range both {
		both[rank].Share = shares.Share{Rank: rank, Of: 2, At: at}
	}
	require.NoError(t, one.Save(t.Context(), 1, both[1]))
	require.NoError(t, zero.Save(t.Context(), 1, both[0]))

	for _, early := range []bool{false, true} {
		s := on()
		state, prepare := prepared(s)
		if early {
			prepare()
		}
		c, err := zero.Load(t.Context(), 1)
		require.NoError(t, err)
		reads := 0
		for i := range c.Tensors {
			tensor := &c.Tensors[i]
			if write := tensor.Write; write != nil {
				require.Nil(t, tensor.Data)
				tensor.Write = func(w io.Writer) error {
					s.order = append(s.order, "read "+tensor.Name)
					return write(w)
				}
				reads++
			}
		}
		require.Equal(t, len(values), reads)
		s.order = nil
		require.NoError(t, state.Restore(t.Context(), c))
		if !early {
			require.Empty(t, s.order)
			waiting, err := state.Content(t.Context())
			require.NoError(t, err)
			require.NoError(t, zero.Save(t.Context(), 2, waiting))
			s.order = nil
			prepare()
		}
		for i, what := range s.order {
			if name, read := bytes.CutPrefix([]byte(what), []byte("read ")); read {
				require.Equal(t, "put "+string(name), s.order[i+1], "%q", s.order)
				reads--
			}
		}
		require.Zero(t, reads, "%q", s.order)
		for name, want := range values {
			got, err := state.Value("/" + name)
			require.NoError(t, err)
			require.Equal(t, want, got.Value())
		}
	}
	again, err := zero.Load(t.Context(), 2)
	require.NoError(t, err)
	b, ok := again.Tensor("/b")
	require.True(t, ok)
	require.Equal(t, []byte{0, 0, 160, 64}, b.Data[:4])
}
