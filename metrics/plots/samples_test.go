package plots_test

import (
	"bytes"
	"image"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/metrics/plots"
)

func TestSamples(t *testing.T) {
	grey, err := plots.Image([]float32{0, 0.5, 1, 2}, 2, 2, 1, 0, 1)
	require.NoError(t, err)
	rgb := func(x, y int) [3]uint32 {
		r, g, b, _ := grey.At(x, y).RGBA()
		return [3]uint32{r >> 8, g >> 8, b >> 8}
	}
	require.Equal(t, [][3]uint32{{0, 0, 0}, {128, 128, 128}, {255, 255, 255}, {255, 255, 255}}, [][3]uint32{rgb(0, 0),
		rgb(1, 0), rgb(0, 1), rgb(1, 1)})
	colours, err := plots.Image([]float32{255, 0, 10, 0, 0, 0}, 1, 2, 3, 0, 255)
	require.NoError(t, err)
	r, g, b, _ := colours.At(0, 0).RGBA()
	require.Equal(t, [3]uint32{255, 0, 10}, [3]uint32{r >> 8, g >> 8, b >> 8})

	var out bytes.Buffer
	require.NoError(t, plots.Samples(plots.Sample{Image: grey, Label: "cat", Predicted: "cat", Probability: 0.5},
		plots.Sample{Image: colours, Label: "cat", Predicted: "<b>", Probability: 1, Note: "loss 2"}, plots.Sample{Image: grey,
			Predicted: "new"}).SVG(&out))
	d := read(t, out.String())
	require.Equal(t, []string{"Samples", "cat (50.0%)", "right", "<b> (100.0%)", "wrong: is cat", "loss 2", "new (0.0%)"}, d.texts)
	require.Equal(t, 3, d.counts["image"])
	require.Contains(t, out.String(), "href=\"data:image/png;base64,")

	narrow, err := plots.Image(make([]float32, 1000), 1000, 1, 1, 0, 1)
	require.NoError(t, err)
	require.NoError(t, plots.Samples(plots.Sample{Image: narrow, Predicted: "a"}).PNG(io.Discard))

	for what, bad := range map[string]*plots.Figure{
		"there are none":         plots.Samples(),
		"no image":               plots.Samples(plots.Sample{}),
		"expected 0 to 1":        plots.Samples(plots.Sample{Image: grey, Probability: math.NaN()}),
		"more than the 200 that": plots.Samples(make([]plots.Sample, 201)...),
	} {
		require.ErrorContains(t, bad.Err(), what)
	}
	for what, call := range map[string]func() (image.Image, error){
		"2 channels":            func() (image.Image, error) { return plots.Image(make([]float32, 8), 2, 2, 2, 0, 1) },
		"3 numbers for [2, 2,":  func() (image.Image, error) { return plots.Image(make([]float32, 3), 2, 2, 1, 0, 1) },
		"two different numbers": func() (image.Image, error) { return plots.Image(make([]float32, 4), 2, 2, 1, 1, 1) },
		"at [1, 0, 0] is NaN": func() (image.Image, error) {
			return plots.Image([]float32{0, 0, float32(math.NaN()), 0}, 2, 2, 1, 0, 1)
		},
	} {
		_, err := call()
		require.ErrorContains(t, err, what)
	}
}
