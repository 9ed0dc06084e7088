package store

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/xla"
)

func TestOnRead(t *testing.T) {
	var a Access
	var calls []string
	add := func(name string, err error) func() {
		remove, err := a.OnRead(func() error { calls = append(calls, name); return err })
		require.NoError(t, err)
		return remove
	}
	removeFirst := add("first", nil)
	calls = nil
	removeSecond := add("second", nil)
	require.Equal(t, []string{"first"}, calls, "earlier ones are called first")
	calls = nil
	require.NoError(t, a.BeforeRead())
	require.Equal(t, []string{"first", "second"}, calls)
	removeFirst()
	removeFirst()
	calls = nil
	require.NoError(t, a.BeforeRead())
	require.Equal(t, []string{"second"}, calls)
	removeSecond()

	broken := errors.New("broken")
	fails := true
	_, err := a.OnRead(func() error {
		if fails {
			return broken
		}
		return nil
	})
	require.NoError(t, err)
	add2 := func() error { _, err := a.OnRead(func() error { return nil }); return err }
	require.ErrorIs(t, add2(), broken)
	require.ErrorIs(t, a.BeforeRead(), broken)
	fails = false
	require.NoError(t, a.BeforeRead())
}

// The function of a step that is being built cannot ask the state.
func TestOnRead_withinABuild(t *testing.T) {
	var a Access
	done, err := a.HoldStructure(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, a.BeforeRead(), xla.ErrBusy)
	_, err = a.OnRead(func() error { return nil })
	require.ErrorIs(t, err, xla.ErrBusy)
	done()
	require.NoError(t, a.BeforeRead())
}
