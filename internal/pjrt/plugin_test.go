package pjrt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLoadOncePerFile(t *testing.T) {
	path := freshFake(t, buildFake(t))
	link := filepath.Join(t.TempDir(), "link.so")
	require.NoError(t, os.Symlink(path, link))
	a, err := Load(path)
	require.NoError(t, err)
	_, before, _ := fakeState(t, a)
	b, err := Load(link)
	require.NoError(t, err)
	assert.Same(t, a, b)
	_, after, _ := fakeState(t, a)
	assert.Equal(t, before, after, "it was initialized once")
	assert.Equal(t, path, b.Path())
	assert.Equal(t, 200, a.Version().Minor, "a newer minor version")
	assert.Greater(t, a.Version().StructSize, MinTableSize, "a longer table")
	assert.Empty(t, a.Extensions())
}
