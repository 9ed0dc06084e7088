package report_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/report"
	"github.com/lazo-ml/lazo/nn"
)

// Black and white are 0 and 1, or 0 and 255, or else the lowest and highest value.
func TestSamples_blackAndWhite(t *testing.T) {
	pictures := func(scale, shift float32) []string {
		x := make([]float32, 4*8*8)
		for i := range x {
			x[i] = scale*float32(i%64/8)/7 + shift
		}
		m := newModel(t, nn.Sequential{nn.Flatten{}, nn.Dense{Units: 2}}, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithMetrics("accuracy"))
		dir := t.TempDir()
		require.NoError(t, report.Run{Model: m, Test: must.M1(data.New(data.X(x, 4, 8, 8, 1), data.Y([]int32{0, 1, 0, 1}, 4)))}.Save(t.Context(), dir))
		page := must.M1(os.ReadFile(filepath.Join(dir, "report.html")))
		return regexp.MustCompile(`data:image/png;base64,[^"]*`).FindAllString(string(page), -1)
	}
	want := pictures(1, 0)
	require.NotEmpty(t, want)
	require.Equal(t, want[0], pictures(255, 0)[0])
	require.Equal(t, want[0], pictures(2, -1)[0])
	require.NotEqual(t, want[0], pictures(0.5, 0)[0])
}
