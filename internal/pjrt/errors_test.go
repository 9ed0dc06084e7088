package pjrt

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Close during use by other goroutines: a typed error or the result, never a crash.
func TestF41_CloseWhileInUse(t *testing.T) {
	const rounds = 60
	results := map[string]int{}
	var mu sync.Mutex
	note := func(t *testing.T, err error) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			results["done"]++
		case errors.Is(err, ErrClosed):
			results["closed"]++
		case errors.Is(err, ErrBusy):
			results["busy"]++
		default:
			t.Errorf("%v", err)
		}
	}
	for round := range rounds {
		c := openCPU(t, 1)
		call, state := stateCall(t, c, 4, 64)
		e := call.run.of
		closers := []interface{ Close() error }{c, call, state[0], e}
		var wg sync.WaitGroup
		begin := make(chan struct{})
		for range 2 {
			wg.Go(func() {
				<-begin
				for range 20 {
					_, err := call.Run()
					note(t, err)
				}
			})
		}
		wg.Go(func() {
			<-begin
			dst := make([]byte, 64*4)
			for range 20 {
				note(t, state[0].ToHost(dst))
				view, err := state[1].View()
				if err == nil {
					err = view.Close()
				}
				note(t, err)
			}
		})
		for range 2 {
			wg.Go(func() {
				<-begin
				note(t, closers[round%len(closers)].Close())
			})
		}
		close(begin)
		wg.Wait()
		if err := c.Close(); !isClosed(err) {
			require.NoError(t, err)
		}
		now := Live()
		require.Equal(t, Counts{Collected: now.Collected}, now)
	}
	t.Logf("%d rounds: %v", rounds, results)
	require.Positive(t, results["done"])
	require.Positive(t, results["closed"])
}

// Each call of a session fails in turn, with a device that shares the host's memory and with one that does not.
func TestF17_F18_G30_FailCallK(t *testing.T) {
	library := buildFake(t)
	failCallK(t, library)
	t.Setenv(fakeRemote, "1")
	failCallK(t, library)
}
