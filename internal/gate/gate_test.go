package gate_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/gate"
)

// Readers share, a change is alone, and no waiter is lost, even if others give up.
func TestGate(t *testing.T) {
	var g gate.Gate
	var readers, changers, most atomic.Int64
	shared := 0 // for the race detector too
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 500 {
				ctx, cancel := context.WithCancel(context.Background())
				if n%7 == i%7 {
					go cancel()
				}
				if (n+i)%5 == 0 {
					if g.Change(ctx) == nil {
						if changers.Add(1) != 1 || readers.Load() != 0 {
							t.Error("not alone")
						}
						shared++
						changers.Add(-1)
						g.DoneChanging()
					}
				} else if g.Read(ctx) == nil {
					most.Store(max(most.Load(), readers.Add(1)))
					if changers.Load() != 0 {
						t.Error("something changes")
					}
					_ = shared
					readers.Add(-1)
					g.DoneReading()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(g.Close(nil), g.Close(nil)))
	require.ErrorIs(t, g.Read(t.Context()), gate.ErrClosed)
	require.ErrorIs(t, g.Change(t.Context()), gate.ErrClosed)
}

// Each in its turn: one that wants to change is not passed over by readers that come later, nor are they by others that
// change.
func TestGate_order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate.Gate
		var order []string
		require.NoError(t, g.Read(t.Context()))
		for _, name := range []string{"change 1", "read", "change 2"} {
			go func() {
				if name == "read" {
					_ = g.Read(t.Context())
					order = append(order, name)
					g.DoneReading()
					return
				}
				_ = g.Change(t.Context())
				order = append(order, name)
				g.DoneChanging()
			}()
			synctest.Wait()
		}
		require.Empty(t, order)
		g.DoneReading()
		synctest.Wait()
		require.Equal(t, []string{"change 1", "read", "change 2"}, order)
	})
}

// A wait ends with its context, and later waits do not depend on it. Close ends waits and waits for current uses.
func TestGate_waitsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate.Gate
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		require.NoError(t, g.Read(ctx))
		results := make(chan error, 3)
		go func() { results <- g.Change(ctx) }()
		synctest.Wait()
		go func() { results <- g.Read(t.Context()) }()
		synctest.Wait()
		cancel(gone)
		require.ErrorIs(t, <-results, gone)
		require.NoError(t, <-results, "the reader behind it")
		require.ErrorIs(t, g.Change(ctx), gone)

		go func() { results <- g.Change(t.Context()) }()
		synctest.Wait()
		closed := false
		go func() { _ = g.Close(nil); closed = true }()
		synctest.Wait()
		require.ErrorIs(t, <-results, gate.ErrClosed)
		g.DoneReading()
		synctest.Wait()
		require.False(t, closed, "one is inside")
		g.DoneReading()
		synctest.Wait()
		require.True(t, closed)
	})
}

func BenchmarkGate(b *testing.B) {
	var g gate.Gate
	for b.Loop() {
		_ = g.Change(b.Context())
		g.DoneChanging()
	}
}

func TestOnce(t *testing.T) {
	first, second, other := fmt.Errorf("a: %w", gate.ErrOwnerClosed), fmt.Errorf("b: %w", gate.ErrOwnerClosed), errors.New("c")
	require.NoError(t, gate.Once(nil))
	require.Equal(t, other, gate.Once(other))
	require.Equal(t, first, gate.Once(first))
	err := gate.Once(errors.Join(other, errors.Join(first, second), second, other))
	require.EqualError(t, err, "c\na: "+gate.ErrOwnerClosed.Error()+"\nc", "no other is left out")
	require.ErrorIs(t, err, gate.ErrOwnerClosed)
}

// TestS24_everyCloseReturnsAfterTheFree: of many calls of Close, one frees, and none returns before it has.
func TestS24_everyCloseReturnsAfterTheFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g gate.Gate
		require.NoError(t, g.Read(t.Context()))
		freed, calls, returned := make(chan struct{}), 0, atomic.Int64{}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				_ = g.Close(func() error { calls++; <-freed; return nil })
				returned.Add(1)
			})
		}
		synctest.Wait()
		require.Zero(t, calls, "a use is under way")
		g.DoneReading()
		synctest.Wait()
		require.Equal(t, 1, calls)
		require.Zero(t, returned.Load(), "nothing is freed yet")
		close(freed)
		wg.Wait()
		require.Equal(t, 1, calls)
	})
}
