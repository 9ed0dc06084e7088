package store

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/gate"
	"github.com/lazo-ml/lazo/xla"
)

// The holder of the structure is refused, others wait for it.
func TestHoldStructure(t *testing.T) {
	var a Access
	done, err := a.HoldStructure(t.Context())
	require.NoError(t, err)
	_, err = a.HoldStructure(t.Context())
	require.ErrorIs(t, err, xla.ErrBusy)
	require.ErrorContains(t, err, "the function of a step that is being built cannot wait for the state")
	enough := errors.New("enough")
	other := make(chan error)
	go func() {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(enough)
		_, err := a.HoldStructure(ctx)
		other <- err
	}()
	require.ErrorIs(t, <-other, enough, "another goroutine waits")
	done()
	done, err = a.ChangeAll(t.Context())
	require.NoError(t, err)
	done()
	a.PeekAll()()
}

// Within a build, peeks of its own state work, whether it holds the values or not.
func TestPeek_withinABuild(t *testing.T) {
	var a Access
	done, err := a.HoldStructure(t.Context())
	require.NoError(t, err)
	a.PeekValues()()
	a.PeekAll()()
	doneValues, err := a.AddValues(t.Context(), true)
	require.NoError(t, err)
	a.PeekValues()()
	a.PeekAll()()
	doneValues()
	a.PeekValues()()
	done()
}

func TestAccess_readersShareTheValues(t *testing.T) {
	var a Access
	require.NoError(t, a.EnterValues(t.Context(), false))
	require.NoError(t, a.EnterValues(t.Context(), false))
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	require.ErrorIs(t, a.ChangeValues(ctx), enough, "a change waits for both")
	a.LeaveValues(false)
	a.LeaveValues(false)
	require.NoError(t, a.ChangeValues(t.Context()))
	a.LeaveValues(true)
}

func TestAccess_ofAClosedStore(t *testing.T) {
	var s Store
	s.Init(&devices{})
	require.NoError(t, s.Close(func() error { return nil }))
	_, err := s.HoldStructure(t.Context())
	require.ErrorIs(t, err, gate.ErrClosed)
	require.ErrorContains(t, err, "the state: ")
	for _, f := range []func(context.Context) (func(), error){s.Change, s.Read, s.ReadAll, s.ChangeAll} {
		_, err := f(t.Context())
		require.ErrorIs(t, err, gate.ErrClosed)
	}
	s.PeekAll()() // still without an error
	s.PeekValues()()
}
