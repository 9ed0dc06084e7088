package plots_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics/plots"
)

// Names are text on the page, whatever they hold.
func TestReport(t *testing.T) {
	hostile := `</title><script>alert(1)</script><img src=x onerror="alert(2)">` + "\x00\x1b\xff\u202e"
	dir := filepath.Join(t.TempDir(), "a", "b")
	grey, err := plots.Image([]float32{0, 1}, 1, 2, 1, 0, 1)
	require.NoError(t, err)
	r := plots.Report{Title: hostile, Card: []plots.Part{{Title: hostile, Rows: []plots.Row{{Name: hostile,
		Value: hostile}}}}, Figures: []*plots.Figure{
		plots.History(learned(3, strings.ReplaceAll(hostile, ".", ""), -1)), plots.Confusion([][]int{{1, 0}, {0, 1}},
			[]string{hostile, "b"}),
		plots.Samples(plots.Sample{Image: grey, Label: hostile, Predicted: "b", Probability: 1}),
		plots.Network(plots.Block{Name: hostile, Kind: hostile,
			Shape: hostile}), plots.Histograms(plots.Weights{Name: hostile, Values: []float32{1}}),
	}}
	require.NoError(t, r.Save(dir))
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	require.NoError(t, err)
	selfContained(t, string(page))
	require.NotContains(t, string(page), "<img")
	require.NotContains(t, string(page), "\x1b")
	require.NotContains(t, string(page), "\u202e")
	d := read(t, string(page[bytes.Index(page, []byte("<body>")):bytes.Index(page, []byte("</html>"))]))
	require.Equal(t, 6, d.counts["svg"])
	require.Equal(t, 5, d.counts["section"]-1, "a section a figure, and one of the card")

	require.ErrorContains(t, plots.Report{}.Save(dir), "no card and no figures")
	require.ErrorContains(t, plots.Report{Figures: []*plots.Figure{plots.Network()}}.Save(dir), "no blocks")
	require.ErrorContains(t, plots.Report{Figures: []*plots.Figure{nil}}.Save(dir), "figure 0 is nil")
	left, err := os.ReadFile(filepath.Join(dir, "report.html"))
	require.NoError(t, err)
	require.Equal(t, page, left, "a report that fails leaves the one that is there")
}
