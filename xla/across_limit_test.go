package xla_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/xla"
)

// XLA's CPU refuses a program over more devices with words that say nothing of how many there may be, and rank 0 needs
// half a minute until then.
func TestRankLimit(t *testing.T) {
	require.NoError(t, xla.RankLimit(2))
	require.NoError(t, xla.RankLimit(2048))
	err := xla.RankLimit(2049)
	require.ErrorIs(t, err, xla.ErrUnimplemented)
	require.ErrorContains(t, err, "2048 devices at most")
}
