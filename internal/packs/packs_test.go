package packs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type params map[string]any

func (p params) GetParam(path string) (any, bool) { v, ok := p[path]; return v, ok }
func (p params) SetParam(path string, value any)  { p[path] = value }

func TestPath(t *testing.T) {
	for n, want := range map[int]string{1: "/a/#pack", 2: "/a/#pack_2", 11: "/a/#pack_11"} {
		require.Equal(t, want, Path("/a", n))
		require.True(t, Is(want))
	}
	for _, other := range []string{"/a/pack", "/a/#packed", "/#pack/kernel"} {
		require.False(t, Is(other), other)
	}
}

func TestNames(t *testing.T) {
	of := params{"/a/kernel": []string{"other"}}
	pack := Path("/a", 1)
	require.Nil(t, Names(of, pack), "no pack is noted")
	Note(of, pack, []string{"x", "y"})
	require.Equal(t, []string{"x", "y"}, Names(of, pack))
	require.Nil(t, Names(of, "/a/kernel"), "no pack")
	require.False(t, Apart(of, pack))
	SetApart(of, pack)
	require.True(t, Apart(of, pack))
	require.False(t, Apart(of, Path("/a", 2)))
	Note(of, pack, []string{"z"})
	require.False(t, Apart(of, pack), "the values of a new pack are equal")
}
