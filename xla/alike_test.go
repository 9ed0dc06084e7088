package xla

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Ranks with another plugin, other flags or newer instructions are refused; a flag makes unlike CPUs alike.
func TestUnlikeRanks(t *testing.T) {
	old, recent := slices.Index(levels, "AVX2"), slices.Index(levels, "AVX512")
	require.NotEqual(t, instructions("", old), instructions("", recent))
	for _, flags := range []string{"--xla_cpu_max_isa=AVX2", "--a=1 --xla_cpu_max_isa=avx2"} {
		require.Equal(t, instructions(flags, old), instructions(flags, recent))
	}
	require.Equal(t, "AVX512", instructions("--xla_cpu_max_isa=AVX512_VNNI", slices.Index(levels, "AMX")))
	require.Equal(t, "AVX2", instructions("--xla_cpu_max_isa=AMX", old))
	require.Equal(t, "--b", withoutDumps("--xla_dump_to=x  --b --xla_dump_hlo_as_text"))

	require.NoError(t, unlikeRanks([][]byte{[]byte("a"), []byte("a")}))
	require.ErrorContains(t, unlikeRanks([][]byte{[]byte("a"), []byte("a"), []byte("b")}), "rank 2 has b, and rank 0 has a, so that equal programs would compute different bits")
}
