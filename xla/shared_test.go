package xla_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

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
