package plots_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics/plots"
)

// A character that an image's font lacks is an error there, and text in an SVG.
func TestPNG_lacksCharacters(t *testing.T) {
	f := plots.History(learned(2, "損失", -1))
	require.NoError(t, f.SVG(io.Discard))
	err := f.PNG(io.Discard)
	require.ErrorIs(t, err, plots.ErrGlyph)
	require.ErrorContains(t, err, "損")
}

// If a name is too long, the name is truncated and never the figure after it.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("a long name of a class ", 5)
	c := plots.Classified{Classes: []string{long + "0", long + "1", long + "2"}, Labels: []int{0, 1, 0, 1},
		Scores: [][]float64{{1, 0, 0}, {0, 1, 0}, {1, 0, 0}, {0, 1, 0}}}
	texts := strings.Join(svgOf(t, plots.ROC(c)).texts, "\n")
	require.Contains(t, texts, "… (AUC 1.000)")
	require.Contains(t, texts, "…: no example is of it")
	require.Contains(t, strings.Join(svgOf(t, plots.PrecisionRecall(c)).texts, "\n"), "… (AP 1.000)")
	grey, err := plots.Image([]float32{0}, 1, 1, 1, 0, 1)
	require.NoError(t, err)
	f := plots.Samples(plots.Sample{Image: grey, Label: long + "0", Predicted: long + "1", Probability: 0.25}).Caption("all <b>")
	d := svgOf(t, f)
	require.Contains(t, strings.Join(d.texts, "\n"), "… (25.0%)")
	require.Equal(t, []string{"Samples", "all <b>"}, d.texts[:2])
	var page bytes.Buffer
	require.NoError(t, f.HTML(&page))
	require.Contains(t, page.String(), "<p>all &lt;b&gt;</p>")
	d = svgOf(t, plots.Network(plots.Block{Name: long, Kind: "Dense", Shape: "Float32 [32 10]"}))
	require.Contains(t, strings.Join(d.texts, "\n"), "…  Dense")
}
