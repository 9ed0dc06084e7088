package store

import (
	"context"
	"errors"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/strategies"
)

// adopted is a store with the values a = [1 2] and b = 3.
func adopted(t *testing.T) (*Store, *model.Store) {
	s, of := &Store{}, model.NewStore()
	s.Init(strategies.Jit(plugintest.Go(t)))
	of.RootScope().VariableWithValue("a", []float32{1, 2})
	of.RootScope().VariableWithValue("b", int64(3))
	require.NoError(t, s.Adopt(s.Fresh(of), of, &Given{}))
	t.Cleanup(func() {
		err := s.Close(func() error { return nil })
		require.NoError(t, err)
	})
	return s, of
}

func valueOf(t *testing.T, s *Store, name string) any {
	at, _ := s.Find(name)
	require.GreaterOrEqual(t, at, 0)
	v, err := s.Fetch(at)
	require.NoError(t, err)
	return v.Value()
}

func TestStore_setAndReplace(t *testing.T) {
	s, _ := adopted(t)
	require.Subset(t, s.Names(), []string{"/a", "/b"})
	at, element := s.Find("/a")
	require.Negative(t, element, "not in a pack")
	require.Equal(t, at, s.Place(s.Variable(at)))
	require.NoError(t, s.Set(at, tensors.FromValue([]float32{3, 4})))
	require.Equal(t, []float32{3, 4}, valueOf(t, s, "/a"))
	none, _ := s.Find("/c")
	require.Negative(t, none)

	buffers, err := s.PutEach(t.Context(), func(i int) (*Tensor, error) {
		if i == at {
			return tensors.FromValue([]float32{5, 6}), nil
		}
		return nil, nil
	})
	require.NoError(t, err)
	require.NoError(t, s.Replace(buffers))
	require.Equal(t, []float32{5, 6}, valueOf(t, s, "/a"))
	require.EqualValues(t, 3, valueOf(t, s, "/b"), "a nil tensor leaves the value")

	broken := errors.New("broken")
	_, err = s.PutEach(t.Context(), func(int) (*Tensor, error) { return nil, broken })
	require.ErrorIs(t, err, broken)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	_, err = s.FetchAll(ctx)
	require.ErrorIs(t, err, broken)
}

// A pinned value stays for its reader while the store has another.
func TestStore_aPinnedValueIsCopied(t *testing.T) {
	s, _ := adopted(t)
	at, _ := s.Find("/a")
	before := s.Buffer(at)
	pin := s.Pin(at)
	now, err := s.Overwritten(at)
	require.NoError(t, err)
	require.NotSame(t, before, now)
	require.NoError(t, s.Set(at, tensors.FromValue([]float32{9, 9})))
	old, err := s.Strategy().Fetch(pin.Buffer)
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2}, old.Value())
	require.NoError(t, pin.Release())
	now = s.Buffer(at)
	same, err := s.Overwritten(at)
	require.NoError(t, err)
	require.Same(t, now, same, "nobody reads it")
}

func TestStore_keepAndCopy(t *testing.T) {
	s, of := adopted(t)
	moves := s.Moves()
	require.NoError(t, s.Keep(func(v *Variable) bool { return v.Path() != "/a" }))
	require.Equal(t, moves+1, s.Moves())
	require.NotContains(t, s.Names(), "/a")
	require.Negative(t, s.Place(of.GetVariable("/a")))
	require.EqualValues(t, 3, valueOf(t, s, "/b"))

	other := &Store{}
	other.Init(s.Strategy())
	require.NoError(t, s.CopyInto(t.Context(), other, s.Variables()))
	at, _ := other.Find("/b")
	require.NoError(t, other.Set(at, tensors.FromScalar(int64(4))))
	require.EqualValues(t, 3, valueOf(t, s, "/b"))
	require.EqualValues(t, 4, valueOf(t, other, "/b"))
	require.NoError(t, other.Close(func() error { return nil }))
	_, err := other.Read(t.Context())
	require.ErrorIs(t, err, gate.ErrClosed)
}
