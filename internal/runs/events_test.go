package runs_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/loop"
)

// Steps of an event file that a resumed run made again do not count.
func TestRuns_hiddenEvents(t *testing.T) {
	dir := t.TempDir()
	write := func() loop.Option { return tensorboard.Write(dir, loop.EachStep) }
	require.NoError(t, train(t, "", 3, nil, write()))
	require.NoError(t, train(t, "", 2, nil, write(), loop.Continue(loop.Elapsed{Steps: 1}, nil)))
	r := read(t, dir)[filepath.Base(dir)]
	require.EqualValues(t, 2, r.Steps)
	require.EqualValues(t, 3, r.Values["losses.loss"].Best, "the loss of 1 was of a step that is hidden")
}
