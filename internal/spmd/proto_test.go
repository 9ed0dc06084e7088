package spmd

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// Unknown fields outside of exchanges keep their bytes; shardings are removed.
func TestRewrite_keepsWhatItDoesNotKnow(t *testing.T) {
	module := made(func(m *module, c *computation) int64 {
		a := c.add("parameter", "a", array(f32, 4), nil, appendBytes(appendNumber(nil, fieldParameterNumber, 0), 901, "of an instruction"))
		a.extra = appendBytes(a.extra, fieldSharding, "of many devices")
		c.rest = []field{{raw: appendBytes(nil, 902, "of a computation")}}
		return c.reduce("sum", a.id, m.by("add", f32)).id
	})
	module = appendBytes(appendNumber(module, 903, 5), fieldOutputSharding, "of many devices, too")
	rewritten, _, err := Rewrite(module, 2)
	require.NoError(t, err)
	for _, kept := range [][]byte{appendBytes(nil, 901, "of an instruction"), appendBytes(nil, 902, "of a computation"), appendNumber(nil, 903, 5)} {
		require.True(t, bytes.Contains(rewritten, kept), "%q", kept)
	}
	require.False(t, bytes.Contains(rewritten, []byte("of many devices")))
}
