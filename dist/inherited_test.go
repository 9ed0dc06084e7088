package dist_test

import (
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/internal/ranks"
)

// Rank 0 inherits the listener of the launcher, so no other process can take its port before it joins. (Under load, one
// of 20 jobs of TestF55 failed with "address already in use".)
func TestJoin_portIsHeld(t *testing.T) {
	if !ranks.Over(t, 2, joins["control"]) {
		return
	}
	if os.Getenv("LAZO_RANK") == "0" {
		l, err := net.Listen("tcp", os.Getenv("LAZO_COORDINATOR"))
		if err == nil {
			l.Close()
		}
		require.ErrorContains(t, err, "address already in use")
	}
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	require.NoError(t, job.Barrier("joined"))
	require.NoError(t, job.Close())
}
