package optim_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/managed"
)

// several is a training step with parameters p0 to p<n-1>. It trains those whose number takes accepts. builds counts
// its builds.
func several(t *testing.T, n int, takes func(i int) bool) (step *managed.Stepper, builds *int) {
	builds = new(int)
	step = managed.TrainStep(func(b *managed.Builder) {
		*builds++
		loss := graph.ScalarZero(b.Graph(), b.Field("x").DType())
		for i := range n {
			p := b.Scope().VariableWithValue(fmt.Sprintf("p%d", i), []float32{1, 2}).NodeValue(b.Graph())
			loss = graph.Add(loss, graph.ReduceAllSum(graph.Square(p)))
		}
		b.Loss("loss", graph.Add(loss, graph.ReduceAllSum(b.Field("x"))))
	}, managed.TrainOnly(func(name string) bool {
		var i int
		_, err := fmt.Sscanf(name, "/p%d", &i)
		return err == nil && takes(i)
	}))
	t.Cleanup(func() { require.NoError(t, step.Close()) })
	return step, builds
}

// arguments is the number of buffers that a program takes.
func arguments(t *testing.T, program string) int {
	main := regexp.MustCompile(`(?s)@main\((.*?)\) ->`).FindStringSubmatch(program)
	require.Len(t, main, 2)
	return strings.Count(main[1], ": tensor<")
}

// saved is the checkpoint of a state, loaded.
func saved(t *testing.T, state *managed.State) *checkpoint.Checkpoint {
	content, err := state.Content(t.Context())
	require.NoError(t, err)
	folder, err := checkpoint.Open(t.TempDir(), checkpoint.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, folder.Close()) }()
	require.NoError(t, folder.Save(t.Context(), 1, content))
	c, err := folder.Load(t.Context(), 1)
	require.NoError(t, err)
	return c
}
