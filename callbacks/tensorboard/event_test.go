package tensorboard_test

import (
	"errors"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

// What TensorBoard 2.21 itself says of the fixture, by its loader in Python and by its data server (testdata/seen.py),
// is what our reader says.
func TestTensorBoardSees(t *testing.T) {
	dir := t.TempDir()
	if *fixture != "" {
		dir = *fixture
	}
	writeFixture(t, dir)
	var lines []string
	for _, run := range []string{"1", "1/train", "1/test"} {
		lines = append(lines, seen(t, run, read(t, filepath.Join(dir, run)))...)
	}
	slices.Sort(lines)
	golden, err := os.ReadFile("testdata/seen.golden")
	require.NoError(t, err)
	require.Equal(t, string(golden), strings.Join(lines, "\n")+"\n")
	t.Logf("%d lines as TensorBoard prints them", len(lines))
}

func TestValues_thatCannotBeWritten(t *testing.T) {
	for _, row := range []struct {
		name  string
		value any
		err   string
	}{
		{"lost", badPayload{errors.New("device lost")}, "device lost"},
		{"sizes", []image.Image{ramp(1, 2), ramp(2, 1)}, "image 2 of a list is (2,1), the first (1,2): they must be of one size"},
		{"a nil image", []image.Image{nil}, "a nil image"},
		{"no pixels", ramp(0, 0), "png: invalid format: invalid image size: 0x0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := write(t, func(l *loop.Logs) { l.Output("o", row.value) })
			require.EqualError(t, err, "tensorboard: step 1: outputs.o: "+row.err)
			require.Empty(t, got.points)
		})
	}
}
