package autodiff

import (
	"reflect"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
)

func TestRules(t *testing.T) {
	require.NotEqual(t, reflect.ValueOf(stock).Pointer(), reflect.ValueOf(graph.VJPRegistration).Pointer())
	require.Contains(t, graph.VJPRegistration, graph.NodeTypeInvalid)
	for kind := range rules() {
		require.Contains(t, stock, kind, "a rule for what GoMLX cannot differentiate")
	}
	for kind := range missing() {
		require.NotContains(t, stock, kind, "GoMLX has a rule now: see whether ours is needed")
	}
	t.Logf("%d of %d rules replaced", len(rules()), len(stock))
}
