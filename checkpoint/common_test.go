package checkpoint_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// Two processes that save apart: where only one has saved the newest step, both go on from the newest that both have.
func TestB104_newestCommonStep(t *testing.T) {
	ctx := t.Context()
	one, two := &vfs.Mem{}, &vfs.Mem{}
	run := func(m *vfs.Mem, until loop.Steps) {
		f := openMem(t, m, checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Last(3)}})
		resumed(t, f, until)
		require.NoError(t, f.Close())
	}
	for _, until := range []loop.Steps{10, 15} {
		run(one, until)
		run(two, until)
	}
	run(one, 18) // two was killed before

	for _, row := range []struct {
		name         string
		own, other   *vfs.Mem
		has, resumed int64
	}{{"one", one, two, 18, 15}, {"two", two, one, 15, 15}} {
		t.Run(row.name, func(t *testing.T) {
			own := openMem(t, row.own, checkpoint.Options{Overwrite: true})
			other := openMem(t, row.other, checkpoint.Options{ReadOnly: true})
			all := steps(t, own)
			require.EqualValues(t, row.has, all[len(all)-1])
			step, err := checkpoint.Common(ctx, own, other)
			require.NoError(t, err)
			state := &counter{}
			start, err := checkpoint.ResumeAt(ctx, own, step, state)
			require.NoError(t, err)
			require.Equal(t, row.resumed, start.Elapsed.Steps)
			_, err = counting().Run(ctx, state, numbered(start.Elapsed.Steps), start.Option(), loop.Until(loop.Steps(20)),
				checkpoint.Save(own, loop.Never))
			require.NoError(t, err, "it saves over what the other process never had")
			require.NoError(t, own.Close())
		})
	}
	t.Log("B104: two processes, one saved step 18 alone: both go on from step 15")
}

func TestCommon(t *testing.T) {
	ctx := t.Context()
	const tensors = "/state.safetensors"
	for _, row := range []struct {
		name    string
		folders [][]checkpoint.Step
		damaged checkpoint.Step // in the last folder
		want    checkpoint.Step // 0 is none
	}{
		{"one folder", [][]checkpoint.Step{{1, 2}}, 0, 2},
		{"damaged in one", [][]checkpoint.Step{{1, 2, 3}, {1, 2, 3}}, 3, 2},
		{"three", [][]checkpoint.Step{{1, 3, 5}, {2, 3, 4, 5}, {3, 4}}, 0, 3},
		{"nothing in common", [][]checkpoint.Step{{1, 3}, {2, 4}}, 0, 0},
		{"an empty one", [][]checkpoint.Step{{1, 3}, {}}, 0, 0},
		{"no folder", nil, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			var folders []*checkpoint.Folder
			var said bytes.Buffer
			log := slog.New(slog.NewTextHandler(&said, nil))
			for i, list := range row.folders {
				m := saved(t, list...)
				if row.damaged > 0 && i == len(row.folders)-1 {
					text := read(t, m, dir(row.damaged)+tensors)
					text[len(text)-1]++
					write(t, m, dir(row.damaged)+tensors, text)
				}
				folders = append(folders, openMem(t, m, checkpoint.Options{ReadOnly: true, Log: log}))
			}
			step, err := checkpoint.Common(ctx, folders...)
			require.Equal(t, row.damaged > 0, strings.Contains(said.String(), "passed over"), "a step that a folder never had is no damage: %s", &said)
			if row.want == 0 {
				require.ErrorIs(t, err, checkpoint.ErrNone)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.want, step)
		})
	}
	closed := openMem(t, saved(t, 1), checkpoint.Options{})
	require.NoError(t, closed.Close())
	_, err := checkpoint.Common(context.Background(), closed)
	require.ErrorIs(t, err, checkpoint.ErrClosed)
}
