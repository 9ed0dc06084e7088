package dist_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/internal/ranks"
)

// F59: a leftover process of another job or an earlier start connects to rank 0. It is refused with a reason, and the
// job continues with the right rank.
func TestF59_aProcessOfAnotherJob(t *testing.T) {
	t.Parallel()
	if !ranks.Inside(t) {
		for range faultTimes {
			said, err := ranks.Start(t, 2, joins["control"])
			require.NoError(t, err, said)
			require.Contains(t, said, "F59: refused")
			t.Log(said)
		}
		return
	}
	if os.Getenv("LAZO_RANK") == "1" {
		for variable, value := range map[string]string{"LAZO_JOB": "another", "LAZO_ATTEMPT": "-1"} {
			own := os.Getenv(variable)
			require.NoError(t, os.Setenv(variable, value))
			_, err := dist.Join(t.Context())
			require.ErrorContains(t, err, "refuses this process (rank 1): it is of ")
			require.ErrorContains(t, err, value)
			os.Stderr.WriteString("F59: refused: " + err.Error() + "\n")
			require.NoError(t, os.Setenv(variable, own))
		}
	}
	job, err := dist.Join(t.Context())
	require.NoError(t, err)
	require.NoError(t, job.Barrier("all are here"))
	require.NoError(t, job.Close())
}
