package ranks

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist/launch"
)

// The test continues in its ranks alone, and their output and failure come back.
func TestStart_ofFailingRanks(t *testing.T) {
	if Inside(t) {
		t.Fatal("this rank fails")
	}
	said, err := Start(t, 2)
	var exit *launch.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.Code)
	require.Contains(t, said, "this rank fails")
}
