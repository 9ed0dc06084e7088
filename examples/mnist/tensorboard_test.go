package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

func TestTensorBoardFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	code, _, stderr := trained(t, plugintest.Program(t, "."), "-quiet", "-epochs", "1", "-tensorboard", dir)
	require.Equal(t, 0, code, stderr)
	files, err := filepath.Glob(filepath.Join(dir, "train", "events.out.tfevents.*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
}
