package main_test

import (
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBenchData(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"cat/1.png", "cat/2.png", "dog/1.png"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		file, err := os.Create(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, png.Encode(file, image.NewGray(image.Rect(0, 0, 9, 8))))
		require.NoError(t, file.Close())
	}
	got := run(t, "bench-data", dir, "--height", "6", "--width", "5", "--channels", "1", "--crop", "4", "--flip", "--batch", "2", "--passes", "3")
	require.Zero(t, got.code, got.stderr)
	assert.Contains(t, got.stdout, "9 images of 2 classes as float32 [4 4 1], in 6 batches\n")
	for _, stage := range []string{"read", "decode", "resize", "augment", "copy"} {
		assert.Regexp(t, `(?m)^ +`+stage+` +\d+ +\d+\.\d% +\d+\.\d{4} *$`, got.stdout)
	}
	assert.Regexp(t, `all, side by side +\d+ `, got.stdout)

	for _, row := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{filepath.Join(dir, "none")}, 1, "none"},
		{[]string{dir, "--resize", "no"}, 1, "expected 224 x 224"},
		{[]string{dir, "--resize", "best"}, 2, "best"},
		{[]string{dir, "--passes", "0"}, 1, "passes must be at least 1, got 0"},
		{[]string{dir, "--crop=-1"}, 1, "random crop"},
	} {
		got := run(t, append([]string{"bench-data"}, row.args...)...)
		assert.Equal(t, row.code, got.code, row.want)
		assert.Contains(t, got.stderr, row.want)
	}
}
