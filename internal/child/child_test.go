//lazo:norace
package child

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTailKeepsTheEnd(t *testing.T) {
	var kept Tail
	for i := range 1000 {
		_, err := kept.Write([]byte(strings.Repeat(string(rune('a'+i%26)), i)))
		require.NoError(t, err)
		require.LessOrEqual(t, len(kept.kept), TextLimit)
	}
	assert.True(t, strings.HasSuffix(kept.String(), strings.Repeat(string(rune('a'+999%26)), 999)))
}

func TestTailFindsErrors(t *testing.T) {
	var kept Tail
	for _, part := range []string{"WARNING: x\nE0000 00:00:1.2 1 a.cc:1] Couldn't ", "do it.\nI0000 00:00:1.2 1 a.cc:1] fine\n", strings.Repeat("usage\n", 1000), "F0000 00:00:1.2 1 b.cc:2] Unknown flag"} {
		_, err := kept.Write([]byte(part))
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"Couldn't do it.", "Unknown flag"}, kept.Errors())
	require.True(t, strings.HasSuffix(kept.String(), "Unknown flag"))

	var trace Tail
	_, err := trace.Write([]byte("runtime/cgo: pthread_create failed: x\nSIGABRT: abort\nPC=0\n" + strings.Repeat("goroutine 1\n", 1000)))
	require.NoError(t, err)
	assert.Equal(t, "runtime/cgo: pthread_create failed: x\nSIGABRT: abort", trace.String())
}
