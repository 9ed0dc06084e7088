package checkpoint_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// The look for failures costs the blocks of steps nothing.
func TestResume_leavesBlocksWhole(t *testing.T) {
	blocked := func(options ...loop.Option) (calls int) {
		l := loop.New(loop.On[*counter, int64](loop.EachStep, counted{calls: &calls}))
		_, _, err := run(t.Context(), l, &counter{Rate: 1}, append(options, loop.Until(loop.Steps(1000)))...)
		require.NoError(t, err)
		return calls
	}
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	with, without := blocked(saves(f, loop.Never)), blocked()
	require.Less(t, with, 200, "of 1000 steps; %d without", without)
}

type counted struct {
	blocks
	calls *int
}

func (b counted) StepBlock(ctx context.Context, c *counter, batches []int64) (*counter, []loop.Logs, error) {
	*b.calls++
	return b.blocks.StepBlock(ctx, c, batches)
}

// Another callback's change in the turn of the save is saved, although Resume comes first in the options: the change is
// by exactly 1.
func TestResume_savesAfterAllCallbacks(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	state := &counter{Rate: 1}
	_, _, err := run(t.Context(), counting(), state, saves(f, loop.At(loop.Steps(8))), loop.Until(loop.Steps(8)),
		loop.Watch(loop.At(loop.Steps(8)), func(context.Context, loop.Report) error { state.Rate = 0.25; return nil }))
	require.NoError(t, err)
	result, err := looked(f, &counter{}, at(8))
	require.NoError(t, err)
	require.Equal(t, 0.25, result.State.Rate)
}
