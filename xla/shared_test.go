package xla_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

// A text is compiled once, whether its first program is open or closed.
func TestSharedPrograms(t *testing.T) {
	var log bytes.Buffer
	r := plugintest.Uncached(t, xla.Log(slog.New(slog.NewTextHandler(&log, nil))), xla.KeepPrograms(2))
	compiled := func() int { return strings.Count(log.String(), "cache=off") }
	for range 3 {
		require.Equal(t, []float32{31, 32}, addTo(t, r, 10))
	}
	require.Equal(t, 1, compiled())
	require.Equal(t, 2, strings.Count(log.String(), "cache=shared"))
	for n := range 4 { // the oldest idle one is freed
		addTo(t, r, float64(n))
	}
	hits, all, idle := xla.SharedPrograms(r)
	require.Equal(t, []int{2, 2, 2}, []int{hits, all, idle})
	addTo(t, r, 10)
	require.Equal(t, 6, compiled())
	t.Log("3 programs of one text: 1 compilation")
}

// Of goroutines that ask for a text at once, one compiles. After its error the next compiles.
func TestSharedPrograms_atOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var compilations atomic.Int64
		end := make(chan error)
		results := xla.ShareAtOnce(4, func() error {
			compilations.Add(1)
			return <-end
		})
		for n, err := range []error{errors.New("no memory"), nil} {
			synctest.Wait()
			require.EqualValues(t, n+1, compilations.Load())
			end <- err
			require.Equal(t, err, <-results)
		}
		require.NoError(t, <-results)
		require.NoError(t, <-results)
		require.EqualValues(t, 2, compilations.Load())
	})
}

// The runtime's Close frees idle programs.
func TestSharedPrograms_close(t *testing.T) {
	before := pjrt.Live().Executables
	r, err := xla.Open(t.Context(), xla.CPU)
	require.NoError(t, err)
	addTo(t, r, 10)
	require.EqualValues(t, 1, pjrt.Live().Executables-before)
	require.NoError(t, r.Close())
	require.Zero(t, pjrt.Live().Executables-before)

	_, err = xla.Open(t.Context(), xla.CPU, xla.KeepPrograms(-1))
	require.ErrorContains(t, err, "the number must not be negative, got -1")
}
