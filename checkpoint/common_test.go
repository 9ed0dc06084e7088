package checkpoint_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
)

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
			step, err := folders[0].Common(ctx, folders[1:]...)
			require.Equal(t, row.damaged > 0, strings.Contains(said.String(), "skipped"), "a step that a folder never had is no damage: %s", &said)
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
	_, err := closed.Common(context.Background())
	require.ErrorIs(t, err, checkpoint.ErrClosed)
}
