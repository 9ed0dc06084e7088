package awaited

import (
	"testing"

	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	backend, err := gobackend.New("")
	require.NoError(t, err)
	defer backend.Finalize()
	one, other := graph.NewGraph(backend, "one"), graph.NewGraph(backend, "other")
	given := &Values{Open: true}
	Give(one, given)
	require.Same(t, given, Of(one))
	require.Equal(t, &Values{}, Of(other), "a graph without a state awaits nothing")
}
