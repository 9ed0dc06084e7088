package checkpoint_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// F11: a setting that differs from the saved run is reported, and changes nothing.
func TestF11_whatChangedIsTold(t *testing.T) {
	rows := []struct {
		name       string
		saved, now map[string]string
		want       []checkpoint.Difference
	}{
		{"nothing", map[string]string{"plugin": "cpu 0.0.1"}, map[string]string{"plugin": "cpu 0.0.1"}, nil},
		{"the plugin", map[string]string{"plugin": "cpu 0.0.1", "devices": "1"}, map[string]string{"plugin": "cpu 0.0.2", "devices": "1"},
			[]checkpoint.Difference{{What: "plugin", Saved: "cpu 0.0.1", Now: "cpu 0.0.2"}}},
		{"all", map[string]string{"plugin": "cpu", "devices": "4", "go": "go0.9", "lazo": "v0.0.1"}, map[string]string{"plugin": "cuda", "devices": "2", "go": "go1", "lazo": "v1"},
			[]checkpoint.Difference{{What: "devices", Saved: "4", Now: "2"}, {What: "go", Saved: "go0.9", Now: "go1"}, {What: "lazo", Saved: "v0.0.1", Now: "v1"}, {What: "plugin", Saved: "cpu", Now: "cuda"}}},
		{"GoMLX, which was not noted once", map[string]string{}, map[string]string{"gomlx": "v0.28.8"},
			[]checkpoint.Difference{{What: "gomlx", Saved: "v0.26.0 or none", Now: "v0.28.8"}}},
		{"what one does not know", map[string]string{"plugin": "cpu"}, map[string]string{"devices": "2"}, nil},
	}
	told := 0
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			var said bytes.Buffer
			f := openMem(t, &vfs.Mem{}, checkpoint.Options{Log: slog.New(slog.NewTextHandler(&said, nil))})
			saveOnce(t, f, &valued{runsOn: row.saved}, loop.Elapsed{}, nil)
			var list []checkpoint.Difference
			_, err := looked(f, &valued{runsOn: row.now}, checkpoint.Options{Changed: func(d checkpoint.Difference) error { list = append(list, d); return nil }})
			require.NoError(t, err)
			require.Equal(t, row.want, list)
			told += len(list)
			require.Equal(t, len(row.want), strings.Count(said.String(), "level=WARN"))
			for _, c := range row.want {
				require.Regexp(t, fmt.Sprintf(`step=1 what=%s saved="?%s"? now="?%s`, c.What, c.Saved, c.Now), said.String())
			}
			require.NoError(t, f.Close())
		})
	}
	f := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	saveOnce(t, f, &valued{}, loop.Elapsed{}, nil)
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	content := c.Content()
	content.Sections["versions"] = []int{1}
	other := openMem(t, &vfs.Mem{}, checkpoint.Options{})
	require.NoError(t, other.Save(t.Context(), c.Step, content))
	_, err = looked(other, &valued{})
	require.ErrorContains(t, err, `section "versions": `, "what others have written in its place is not passed over")
	t.Logf("F11: %d changes of plugin, devices, lazo and Go: each is a line of the log that names both, and a value", told)
}
