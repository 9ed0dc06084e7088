package docs_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// readmeRun is README's program of an own step with an evaluation, the best state and resume, word for word.
func readmeRun(ctx context.Context, state *managed.State, step func(*managed.Builder), train, test *data.Set) (loop.Result[*managed.State], error) {
	training := loop.New(
		loop.On(loop.EachStep, managed.TrainStep(step)),
		loop.Evaluate("test", managed.TestStep(step), test.Batches(256)).On(loop.Every(loop.Steps(200))),
	)
	result, err := training.Run(ctx, state, train.Batches(32, data.Shuffle(0)),
		loop.Until(loop.Epochs(10)),
		checkpoint.Resume("run", checkpoint.Every(loop.Steps(500)), checkpoint.KeepBest("loss_test")),
		callbacks.StopEarly("loss_test", callbacks.Evaluations(3)), callbacks.ProgressBar(os.Stderr))
	return result, err
}

func TestReadme_ownStepAndResume(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(readme), "```go\ntraining := loop.New(\n\tloop.On(loop.EachStep, managed.TrainStep(step)),\n\tloop.Evaluate(")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	require.Contains(t, string(source), strings.TrimSuffix(strings.ReplaceAll("\tloop.Evaluate("+block, "\n", "\n\t"), "\t"), "word for word")

	t.Chdir(t.TempDir())
	train, test := line(2048), line(512)
	run := func() loop.Result[*managed.State] {
		state := must.M1(managed.New(jit(), managed.WithOptimizer(optim.New(0.01))))
		defer func() { require.NoError(t, state.Close()) }()
		result, err := readmeRun(t.Context(), state, regression, train, test)
		require.NoError(t, err)
		return result
	}
	first := run()
	require.GreaterOrEqual(t, first.Elapsed.Steps, int64(600))
	again := run()
	require.Equal(t, first.Elapsed.Steps, again.Elapsed.Steps, "the run in the folder has ended")
	require.Equal(t, first.Reason, again.Reason)
}
