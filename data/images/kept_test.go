package images

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

// A folder keeps as many images as its cache has room for; of the others the files are read again.
func TestImageFolder_cache(t *testing.T) {
	files := map[string][]byte{}
	for i := range 10 {
		files[fmt.Sprintf("cat/%d.png", i)] = pngOf(t, ramp(3+i, 4))
	}
	const size = 4 * 2 * 2 * 3 // bytes of an image
	for _, row := range []struct{ cache, kept int64 }{{0, 0}, {size - 1, 0}, {3*size + 1, 3}, {1 << 20, 10}} {
		dir := folder(t, files)
		f, err := Open(dir, Format{Height: 2, Width: 2, Resize: Stretch, Cache: row.cache})
		require.NoError(t, err)
		plain, err := Open(dir, Format{Height: 2, Width: 2, Resize: Stretch})
		require.NoError(t, err)
		want, err := data.Collect(plain.Batches(3, data.Kept).All(), 10)
		require.NoError(t, err)
		for epoch := range 3 {
			got, err := data.Collect(f.Batches(3, data.Kept).All(), 10)
			require.NoError(t, err)
			require.Equal(t, want.Fields(), got.Fields(), "epoch %d", epoch)
			fields := got.Fields()
			clear(fields[0].Array.Flat.([]float32)) // a batch is the consumer's to change
		}

		var stages data.Stages
		for _, err := range f.Batches(1, data.Timed(&stages)).All() {
			require.NoError(t, err)
		}
		require.Equal(t, row.kept == 10, !hasKey(maps.Collect(stages.All()), "decode"), "nothing is decoded again that is kept")
		for name := range files {
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
		}
		missing := 0
		for _, err := range f.Batches(1).All() {
			if err != nil {
				missing++
			}
		}
		require.EqualValues(t, 10-row.kept, missing)
	}
	_, err := Open(t.TempDir(), Format{Height: 2, Width: 2, Cache: -1})
	require.ErrorContains(t, err, "Cache is -1 bytes")
	_, err = Read(nil, Format{Height: 2, Width: 2, Cache: 1})
	require.EqualError(t, err, "images: read: Format.Cache is only for folders of images, expected 0 to read a single image")
}

func hasKey[K comparable, V any](m map[K]V, key K) bool {
	_, ok := m[key]
	return ok
}
