package callbacks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/abilities"
)

type compiles struct{ since time.Time }

func (c compiles) CompilingSince() (time.Time, bool) { return c.since, !c.since.IsZero() }

func TestEpochs_wait(t *testing.T) {
	now := time.Now()
	long := now.Add(-3 * time.Second)
	for _, row := range []struct {
		doing    string
		compiler abilities.Compiler
		since    time.Time
		want     string
	}{
		{"data", nil, long, "waiting for data … 3 s"},
		{"data", nil, now.Add(-waitShown), "waiting for data …"},
		{"data", compiles{long}, now.Add(-waitShown / 2), ""}, // too short to show
		{"evaluation val", nil, long, "validating … 3 s"},
		{"evaluation val", compiles{now.Add(-12 * time.Second)}, long, "compiling … 12 s"},
		{"evaluation val", compiles{}, long, "validating … 3 s"},
		{"train", nil, long, ""},
	} {
		e := &epochs{doing: abilities.Activity{Name: row.doing}, compiler: row.compiler}
		require.Equal(t, row.want, e.wait(now, row.since), "%+v", row)
	}
}
