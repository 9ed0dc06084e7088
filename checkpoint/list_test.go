package checkpoint_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
)

func TestTimeIsTheClocks(t *testing.T) {
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{Keep: []checkpoint.Retention{{EveryTime: time.Hour}}})
	now := time.Date(2026, 5, 1, 12, 30, 0, 123456789, time.FixedZone("", 7200))
	for i := range checkpoint.Step(5) {
		f.SetClock(func() time.Time { return now.Add(time.Duration(i) * 20 * time.Minute) })
		save(t, f, i)
	}
	list, err := f.List(t.Context())
	require.NoError(t, err)
	var times []string
	for _, i := range list {
		times = append(times, fmt.Sprint(i.Step, " ", i.Time))
	}
	require.Equal(t, []string{
		"0 2026-05-01 10:30:00.123456789 +0000 UTC", "2 2026-05-01 11:10:00.123456789 +0000 UTC", "4 2026-05-01 11:50:00.123456789 +0000 UTC",
	}, times, "the first of each hour, and the last in any case")
}
