package checkpoint_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
)

// Each byte of a rank's file that is flipped is found, and each file that is missing, cut short or another step's is
// named; the checkpoint before is taken.
func TestShares_damage(t *testing.T) {
	m := sharedDisk(t, 1, 2)
	damaged := func(what string) *checkpoint.DamagedError {
		t.Helper()
		f := openMem(t, m, checkpoint.Options{ReadOnly: true})
		defer f.Close()
		var found *checkpoint.DamagedError
		require.ErrorAs(t, f.Verify(t.Context(), 2), &found, what)
		c, err := f.Newest(t.Context())
		require.NoError(t, err, what)
		is(t, c, 1)
		require.Len(t, c.PassedOver, 1)
		return found
	}
	flips := 0
	for rank := range 3 {
		name := fmt.Sprintf("rank-%05d.safetensors", rank)
		path := dir(2) + "/" + name
		text := read(t, m, path)
		for i := range text {
			bad := bytes.Clone(text)
			bad[i] ^= 1 << (i % 8)
			write(t, m, path, bad)
			require.Equal(t, path, damaged(fmt.Sprint("byte ", i)).Path)
			flips++
		}
		write(t, m, path, text[:len(text)-1])
		require.Equal(t, path, damaged("cut short").Path)
		write(t, m, path, read(t, m, dir(1)+"/"+name))
		require.Equal(t, path, damaged("of another step").Path)
		require.NoError(t, m.Remove(path))
		lost := damaged("missing")
		require.Equal(t, path, lost.Path)
		require.ErrorIs(t, lost, fs.ErrNotExist)
		f := openMem(t, m, checkpoint.Options{ReadOnly: true})
		list, err := f.List(t.Context())
		require.NoError(t, err)
		require.ErrorContains(t, list[1].Err, name, "a list knows it without reading")
		require.NoError(t, f.Close())
		write(t, m, path, text)
	}
	manifest := read(t, m, dir(2)+"/manifest.json")
	for i := range manifest {
		bad := bytes.Clone(manifest)
		bad[i] ^= 1 << (i % 8)
		write(t, m, dir(2)+"/manifest.json", bad)
		damaged(fmt.Sprint("byte ", i, " of the manifest"))
		flips++
	}
	t.Logf("F03: %d bytes of three ranks' files and their manifest flipped, all found", flips)
}
