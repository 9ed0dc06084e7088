package checkpoint_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
)

func FuzzManifest(f *testing.F) {
	right := read(f, saved(f, 1, 2), dir(2)+"/manifest.json")
	f.Add(right)
	f.Add([]byte(`{"format":1,"step":2,"time":"2026-01-01T00:00:00Z","metrics":{"a\u003c":"NaN"},"state":{"size":8,"header_size":8,"header_crc32c":"00000000"},"tensors":{},"sections":{}}`))
	f.Add([]byte(`{"a":{"b":[1,"\"",{"c":null}]}}`))
	m := saved(f, 1, 2)
	folder := openMem(f, m, checkpoint.Options{ReadOnly: true})
	f.Fuzz(func(t *testing.T, text []byte) {
		write(t, m, dir(2)+"/manifest.json", text)
		write(t, m, dir(2)+"/COMMIT", []byte(checkpoint.Commit(text)))
		c, err := folder.Newest(t.Context())
		if err == nil {
			require.Contains(t, []checkpoint.Step{1, 2}, c.Step)
		} else {
			require.ErrorIs(t, err, checkpoint.ErrNewer)
		}
		again, err := checkpoint.CheckManifest(text)
		if err != nil {
			return
		}
		third, err := checkpoint.CheckManifest(again)
		require.NoError(t, err, "what was taken can be written, and taken again")
		require.Equal(t, string(again), string(third))
	})
}
