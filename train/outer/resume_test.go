package outer_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/train/outer"
)

// saved is a count that can be saved.
type saved struct{ N int }

func (s *saved) Content(context.Context) (checkpoint.Content, error) {
	return checkpoint.Content{Sections: map[string]any{"n": s.N}}, nil
}

func (s *saved) Restore(_ context.Context, c *checkpoint.Checkpoint) error {
	return c.Section("n", &s.N)
}

// next is a step that counts.
func next(ctx context.Context, s *saved, batch int) (*saved, loop.Logs, error) {
	n, logs, err := counting(ctx, s.N, batch)
	s.N = n
	return s, logs, err
}

func open(t *testing.T, dir string) *checkpoint.Folder {
	t.Helper()
	folder, err := checkpoint.Open(dir, checkpoint.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, folder.Close()) })
	return folder
}

func TestOuter_goesOnFromCheckpoints(t *testing.T) {
	dir := t.TempDir()
	folder := open(t, filepath.Join(dir, "checkpoints"))
	var loops []string
	o := outer.Loop[*saved, int]{Train: loop.StepFunc[*saved, int](next), Data: dataOf(55, nil), TotalSteps: 100, LoopSteps: 10, Dir: dir,
		End: []outer.Action[*saved]{{Do: func(ctx context.Context, at outer.Border[*saved]) error {
			return noting(&loops).Do(ctx, border{Inner: at.Inner})
		}}}}
	run := func() outer.Result[*saved] {
		state := &saved{}
		result, err := o.Run(t.Context(), state, folder.Resume(checkpoint.Every(o.LoopSteps)))
		require.NoError(t, err)
		return result
	}
	first := run()
	require.Equal(t, loop.DataEnded, first.Reason)
	require.Equal(t, []string{"1:10", "2:10", "3:10", "4:10", "5:10", "6:5"}, loops)

	loops = nil
	o.Data = endless(nil)
	second := run()
	require.Equal(t, 100, second.State.N)
	require.Equal(t, []string{"6:5", "7:10", "8:10", "9:10", "10:10"}, loops)
	require.EqualValues(t, 100, second.Elapsed.Samples, "the samples of the first run are counted")
	require.Equal(t, 100, second.History.Len(), "the rows of the first run, and 45 of this one")

	loops = nil
	third := run()
	require.Empty(t, loops)
	require.Equal(t, 100, third.State.N)
	require.EqualValues(t, 10, third.Loops)
	text, err := os.ReadFile(filepath.Join(dir, outer.StoppedFile))
	require.NoError(t, err)
	require.Equal(t, "until reached after 100 steps", strings.TrimSpace(string(text)))
}

func TestOuter_restoring(t *testing.T) {
	for _, row := range []struct {
		name    string
		saved   bool // the state of step 0, which is 50
		options []loop.Option
		state   int
	}{
		{"nothing there", false, nil, 3},
		{"nothing there, and From", false, []loop.Option{loop.From(loop.Elapsed{Steps: 2}, nil)}, 1},
		{"step 0", true, nil, 53},
	} {
		t.Run(row.name, func(t *testing.T) {
			folder := open(t, t.TempDir())
			o := outer.Loop[*saved, int]{Train: loop.StepFunc[*saved, int](next), Data: endless(nil), TotalSteps: 3}
			state := &saved{}
			if row.saved {
				pause := loop.Watch(loop.AtStart, func(context.Context, loop.Report) error { return loop.ErrPause })
				resume := folder.Resume(checkpoint.Options{When: loop.AtStart})
				_, err := o.Run(t.Context(), &saved{50}, pause, resume)
				require.NoError(t, err)
				row.options = append(row.options, resume)
			}
			result, err := o.Run(t.Context(), state, row.options...)
			require.NoError(t, err)
			require.Equal(t, row.state, result.State.N)
			require.Equal(t, loop.UntilReached, result.Reason)
		})
	}
}
