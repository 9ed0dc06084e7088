package plots_test

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/metrics/plots"
)

func TestHistory(t *testing.T) {
	h := learned(12, "accuracy", 5)
	d := svgOf(t, plots.History(h))
	for _, text := range []string{"History", "loss", "accuracy", "training", "validation", "step",
		"training: 1 of 12 not finite",
		"best: 0.58, step 440", "best: 0.9333, step 528"} {
		require.Contains(t, d.texts, text)
	}
	require.NotContains(t, d.texts, "outputs")
	full, dashed := d.dashed(blue)
	require.Equal(t, 3, full, "the loss in two parts, and the accuracy")
	require.Equal(t, 1, dashed)

	d = svgOf(t, plots.History(h, "loss_val"))
	require.NotContains(t, d.texts, "accuracy")
	require.NotContains(t, d.texts, "training")
	require.Contains(t, d.texts, "validation")

	var again, once bytes.Buffer
	require.NoError(t, plots.History(h).SVG(&once))
	require.NoError(t, plots.History(h).SVG(&again))
	require.Equal(t, once.String(), again.String())

	require.ErrorContains(t, plots.History(new(loop.History)).SVG(io.Discard), "no rows")
	require.ErrorContains(t, plots.History(nil).Err(), "no rows")
	require.ErrorIs(t, plots.History(h, "los").Err(), loop.ErrNoEntry)
	require.ErrorContains(t, plots.History(h, "loss", "loss").Err(), "named twice")
	require.ErrorContains(t, plots.History(h, "outputs").Err(), "not a number")
	require.ErrorContains(t, plots.History(h, "elapsed.time").Err(), "is the position of a row")
	text := new(loop.History)
	var logs loop.Logs
	logs.Output("text", "a")
	text.Commit(loop.Elapsed{Steps: 1}, logs, 1)
	require.ErrorContains(t, plots.History(text).Err(), "no losses or metrics")
}

// Keras's names and the loop's are of the same figure; the learning rate has a logarithmic axis; epochs stand below.
func TestHistory_ofFit(t *testing.T) {
	rates := func(last float64) *loop.History {
		h := new(loop.History)
		for i := range 4 {
			for half := range 2 { // a row in the middle of each epoch
				var logs loop.Logs
				logs.Loss("loss", 1/float64(i+1))
				logs.Loss("val_loss", 1.5+float64(i*i))
				logs.Stateful("avg_loss", 7)
				logs.Metric("val_recall", float64(i)/10)
				logs.Metric("custom", 1)
				logs.Set("epochs", "learning_rate", 0.1)
				if i == 3 {
					logs.Set("epochs", "learning_rate", last)
				}
				if half == 1 {
					logs.Metric("epoch", float64(i+1))
				}
				h.Commit(loop.Elapsed{Steps: int64(20*i + 10*(half+1))}, logs, 1)
			}
		}
		return h
	}
	d := svgOf(t, plots.History(rates(1e-5)))
	require.Equal(t, []string{"History", "loss", "training", "validation", "best: 1.5, epoch 0.5"}, d.texts[:5],
		"the best is validation's")
	require.Contains(t, d.texts, "best: 0.3, epoch 3.5", "of a recall the highest")
	require.Contains(t, d.texts, "learning_rate")
	require.Contains(t, d.texts, "0.0001", "a power of ten")
	require.NotContains(t, d.texts, "avg_loss")
	require.NotContains(t, d.texts, "epochs")
	best := 0
	for _, text := range d.texts {
		if strings.HasPrefix(text, "best") {
			best++
		}
	}
	require.Equal(t, 2, best, "nobody knows what is good of the custom figure")
	require.Contains(t, svgOf(t, plots.History(rates(0))).texts, "a rate is 0 or below: the axis is linear")
}

// Names that look like a validation's or a loss's have no such meaning there, and an eighth line is dashed.
func TestHistory_ofOwnCollection(t *testing.T) {
	h := new(loop.History)
	names := []string{"norm_loss", "val_norm_loss", "c", "d", "e", "f", "g", "h", "i"}
	for i := range 3 {
		var logs loop.Logs
		for k, name := range names {
			logs.Set("norms", name, float64(i*k))
		}
		logs.Loss("loss", 1)
		h.Commit(loop.Elapsed{Steps: int64(i)}, logs, 1)
	}
	d := svgOf(t, plots.History(h, append(names, "loss")...))
	require.Subset(t, d.texts, append(names, "norms", "training"))
	full, dashed := d.dashed(blue)
	require.Equal(t, []int{2, 1}, []int{full, dashed}, "the loss, the first and the eighth of seven colours")
	require.NotContains(t, d.texts, "validation")
	d = svgOf(t, plots.History(h))
	require.NotContains(t, d.texts, "norms")
}

// Whatever the values and names are, the picture is XML with finite numbers, and drawn in bounded time.
func TestHistory_ofAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := new(loop.History)
		name := rapid.OneOf(rapid.StringMatching(`[a-z<>&"' ]{1,8}`), rapid.String(), rapid.Just("learning_rate")).Draw(t,
			"name")
		name = strings.ReplaceAll(name, ".", "")
		for i, v := range rapid.SliceOfN(rapid.Float64(), 1, 20).Draw(t, "values") {
			if rapid.Bool().Draw(t, "odd") {
				v = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 1, 5e-324, math.MaxFloat64}).Draw(t,
					"which")
			}
			var logs loop.Logs
			logs.Metric(name, v)
			h.Commit(loop.Elapsed{Steps: int64(i + 1)}, logs, 1)
		}
		var out bytes.Buffer
		f := plots.History(h)
		if name == "epoch" {
			require.ErrorContains(t, f.Err(), "no losses or metrics")
			return
		}
		require.NoError(t, f.SVG(&out))
		read(t, out.String())
		require.NotContains(t, out.String(), "NaN")
		require.NotContains(t, out.String(), "Inf")
		require.Less(t, out.Len(), 30_000)
	})
}

// A long history is drawn by few points, and no peak is lost.
func TestHistory_long(t *testing.T) {
	h := new(loop.History)
	for i := range 100_000 {
		var logs loop.Logs
		v := math.Sin(float64(i) / 1e4)
		if i == 54_321 {
			v = 77
		}
		logs.Loss("loss", v)
		h.Commit(loop.Elapsed{Steps: int64(i + 1)}, logs, 1)
	}
	var out bytes.Buffer
	require.NoError(t, plots.History(h).SVG(&out))
	require.Less(t, out.Len(), 30_000)
	texts := read(t, out.String()).texts
	require.Contains(t, texts, "60")
	require.Contains(t, texts, "best: -1, step 47125")
}

// One spike leaves the other values their height, and the title says how.
func TestHistory_ofASpike(t *testing.T) {
	of := func(spike, offset float64) []string {
		h := new(loop.History)
		for i := range 40 {
			var logs loop.Logs
			v := 2/float64(i+1) + offset
			if i == 7 {
				v = spike
			}
			logs.Loss("loss", v)
			h.Commit(loop.Elapsed{Steps: int64(i + 1)}, logs, 1)
		}
		return svgOf(t, plots.History(h)).texts
	}
	require.Contains(t, of(1e6, 0), "loss (logarithmic)")
	require.Contains(t, of(0.3, 0), "loss")
	require.Contains(t, of(1e6, -1), "loss", "what is not above 0 has no logarithm")
}
