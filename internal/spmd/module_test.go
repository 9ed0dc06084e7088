package spmd

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A module that is truncated, or has a changed bit, is an error or another module, never a panic.
func TestRewrite_broken(t *testing.T) {
	module := many()
	refused := 0
	for n := range module {
		if _, _, err := Rewrite(module[:n], 2); err != nil {
			refused++
		}
	}
	require.Greater(t, refused, len(module)*9/10)
	draw := rand.New(rand.NewPCG(1, 2))
	for range 5_000 {
		broken := bytes.Clone(module)
		for range 1 + draw.IntN(4) {
			broken[draw.IntN(len(broken))] ^= 1 << draw.IntN(8)
		}
		if out, _, err := Rewrite(broken, 2); err == nil {
			_, err = parseModule(out)
			require.NoError(t, err)
		}
	}
}
