package data_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

func TestCacheAsksOnce(t *testing.T) {
	s := &source{items: got{1, 2, 3}}
	cached := data.Cache(s.all)
	require.Equal(t, got{1, 2}, list(t, cached, 2))
	require.Equal(t, got{1, 2, 3}, list(t, cached, -1))
	require.Equal(t, 2, s.begun, "a pass that was stopped is not kept")
	for range 5 {
		require.Equal(t, got{1, 2, 3}, list(t, cached, -1))
		require.Equal(t, got{1}, list(t, cached, 1))
	}
	require.Equal(t, 2, s.begun)

	failing := &source{items: got{1, -1}}
	cached = data.Cache(failing.all)
	for range 3 {
		require.Equal(t, got{1, -1}, list(t, cached, -1))
	}
	require.Equal(t, 3, failing.begun, "an error is not kept")
}
