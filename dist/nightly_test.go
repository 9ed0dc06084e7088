//go:build nightly

package dist_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/internal/ranks"
)

const everything = true

// faultTimes is the number of times that each fault is made.
const faultTimes = 20

// A rank that comes 12 s late: the others say what they wait for.
func TestJoin_saysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	for name, by := range joins {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !ranks.Inside(t) {
				said, err := ranks.Start(t, 3, by)
				require.NoError(t, err, said)
				where := map[string]string{"MPI": "in MPI_Init of ", "control": "for rank 2 to come to "}[name]
				require.Contains(t, said, "lazo: rank 0 of 3 ")
				require.Contains(t, said, where)
				require.Equal(t, 2, strings.Count(said, "has waited for 10s, since "), said)
				t.Log(said)
				return
			}
			if late() {
				<-time.After(12 * time.Second)
			}
			job, err := dist.Join(t.Context())
			require.NoError(t, err)
			require.NoError(t, job.Close())
		})
	}
}

// late reports whether this is rank 2.
func late() bool {
	return os.Getenv("LAZO_RANK") == "2" || os.Getenv("OMPI_COMM_WORLD_RANK") == "2" || os.Getenv("PMI_RANK") == "2"
}
