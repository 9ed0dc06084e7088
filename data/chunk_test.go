package data_test

import (
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

func TestChunkAndWindow(t *testing.T) {
	for _, row := range []struct {
		name string
		of   iter.Seq2[[]int, error]
		want string
	}{
		{"kept", data.Chunk(of(1, 2, 3, 4, 5), 2, data.Kept), "[1 2][3 4][5]"},
		{"dropped", data.Chunk(of(1, 2, 3, 4, 5), 2, data.Dropped), "[1 2][3 4]"},
		{"an error", data.Chunk(of(1, -1, 2, 3), 2, data.Kept), "!broken[1 2][3]"},
		{"window", data.Window(of(1, 2, 3, 4), 3, 1), "[1 2 3][2 3 4]"},
		{"window with gaps", data.Window(of(1, 2, 3, 4, 5, 6, 7, 8), 2, 3), "[1 2][4 5][7 8]"},
		{"too short", data.Window(of(1, 2), 3, 1), ""},
		{"padded", data.Chunk(of(1), 2, data.Padded), "!data: chunk: the policy for the remainder is padded, expected data.Dropped or data.Kept"},
		{"none", data.Chunk(of(1), 0, data.Kept), "!data: chunk of 0 items: expected at least 1"},
		{"stride", data.Window(of(1), 1, 0), "!data: window with the stride 0: expected at least 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			text := ""
			var held [][]int
			for c, err := range row.of {
				if err != nil {
					text += "!" + err.Error()
					continue
				}
				held = append(held, c)
				text += fmt.Sprint(c)
			}
			require.Equal(t, row.want, text)
			again := ""
			for _, c := range held {
				again += fmt.Sprint(c)
			}
			require.Contains(t, row.want, again[:min(len(again), 5)], "chunks stay as they were")
		})
	}
}
