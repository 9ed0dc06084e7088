package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/strategies"
)

type running struct {
	err   error
	waits int
}

func (r *running) Wait() error { r.waits++; return r.err }
func (r *running) Over() bool  { return r.waits > 0 }

func TestLast(t *testing.T) {
	var last Last
	require.NoError(t, last.Settled())
	first, second := &running{}, &running{err: errors.New("a batch was wrong")}
	require.NoError(t, last.Follow(first))
	require.Zero(t, first.waits, "one is queued")
	require.NoError(t, last.Follow(second))
	require.Equal(t, 1, first.waits)
	require.ErrorIs(t, last.Settled(), second.err)
	require.NoError(t, last.Settled(), "the state has its values")

	lost := fmt.Errorf("out of memory: %w", strategies.ErrStateLost)
	require.NoError(t, last.Follow(&running{err: lost}))
	require.NoError(t, last.Usable(), "not known yet")
	require.ErrorIs(t, last.Follow(nil), lost)
	require.ErrorContains(t, last.Settled(), "an earlier step failed: out of memory")
	require.Equal(t, lost, last.Lost())

	var other Last
	other.Fails(errors.New("a shape"))
	require.NoError(t, other.Usable())
	other.Fails(lost)
	require.ErrorIs(t, other.Usable(), lost)
}
