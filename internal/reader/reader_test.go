package reader_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/reader"
)

// began starts a reader whose source is a function of yield.
func began(r *reader.Reader, source func(yield func(last bool, err error) bool)) <-chan error {
	over := make(chan error, 1)
	go func() {
		r.Begin()
		source(r.Yield)
		r.End()
		over <- nil
	}()
	return over
}

func TestReader_passesWhatTheSourceYields(t *testing.T) {
	broken := errors.New("broken")
	for _, shared := range []bool{false, true} {
		r := &reader.Reader{Shared: shared}
		turns := 0
		r.Turn = func(last bool, err error) bool {
			defer r.Enter()
			turns++
			require.Equal(t, turns == 2, last)
			if turns == 3 {
				require.Equal(t, broken, err)
			}
			require.Equal(t, !shared, r.Control.TryLock(), "the run holds Control within a turn")
			if !shared {
				r.Control.Unlock()
			}
			return turns < 3
		}
		err, left := r.Wait(t.Context(), began(r, func(yield func(bool, error) bool) {
			require.Equal(t, shared, r.Goroutine != "")
			require.True(t, r.Control.TryLock(), "the source has control")
			r.Control.Unlock()
			require.True(t, yield(false, nil))
			require.True(t, yield(true, nil))
			require.False(t, yield(false, broken))
		}))
		require.NoError(t, err)
		require.False(t, left)
		require.False(t, r.Left())
		require.Equal(t, 3, turns)
		require.Equal(t, !shared, r.Control.TryLock(), "the run holds Control after the source")
	}
}

// A source that blocks after the context ended loses the run after the grace, and finds that when it yields.
func TestReader_leavesASourceThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, release := &reader.Reader{}, make(chan struct{})
		turns := 0
		r.Turn = func(bool, error) bool {
			defer r.Enter()
			turns++
			cancel()
			time.Sleep(3 * reader.Grace) // a turn may take any time
			return true
		}
		over := began(r, func(yield func(bool, error) bool) {
			yield(false, nil)
			<-release
			require.False(t, yield(false, nil))
		})
		begin := time.Now()
		err, left := r.Wait(ctx, over)
		require.NoError(t, err)
		require.True(t, left)
		require.True(t, r.Left())
		require.Nil(t, r.Turn)
		require.GreaterOrEqual(t, time.Since(begin), 4*reader.Grace)
		require.Equal(t, 1, turns)
		close(release)
		<-over
	})
}

// A run without a context that ends belongs to the reader.
func TestReader_uncancelable(t *testing.T) {
	r := &reader.Reader{Uncancelable: true}
	r.Enter()
	require.True(t, r.Leave())
	require.False(t, r.Left())
}
