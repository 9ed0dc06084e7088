package pretrained

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A module of layers is listed for each, and kernels have their axes reversed.
func TestListed(t *testing.T) {
	f := &family{layers: 2}
	list := f.listed([]module{
		{"embeddings", "words", table(7, 3)}, {"layer.#.conv", "layer_#/conv", conv(4, 5, 2, 3)}, {"layer.#.norm", "layer_#/norm", norm(4)},
		{"", "class", []part{{file: "token", own: "token", dims: []int{1, 1, 3}, shape: []int{3}}}}, {"old", "new", conv1D(3, 9)},
	})
	found := map[string]tensor{}
	for _, of := range list {
		require.NotContains(t, found, of.name)
		found[of.name] = of
	}
	require.Len(t, list, 1+2*2+2*2+1+2)
	require.Equal(t, "words/embeddings", found["embeddings.weight"].own)
	kernel := found["layer.1.conv.weight"]
	require.Equal(t, "layer_1/conv/kernel", kernel.own)
	require.Equal(t, []int{2, 3, 4, 5}, kernel.shape())
	require.Equal(t, 6, kernel.places())
	require.Equal(t, "layer.0.norm.gamma", found["layer.0.norm.weight"].older, "older files have this name")
	require.Equal(t, []int{3}, found["token"].shape())
	require.Equal(t, []int{3, 9}, found["old.weight"].shape(), "as in its file")
}

func TestFamily_dense(t *testing.T) {
	f := &family{}
	list := f.listed([]module{{"dense", "dense", linear(3, 4)}, {"plain", "plain", linearNoBias(3, 4)}, {"sound", "sound", conv1(3, 4, 5)}})
	require.Len(t, list, 2+1+2)
	require.Equal(t, []int{4, 3}, list[0].dims)
	require.Equal(t, []int{3, 4}, list[0].shape())
	require.Equal(t, []int{5, 3, 4}, list[3].shape())
}
