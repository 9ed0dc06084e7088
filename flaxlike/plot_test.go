package flaxlike_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
)

// learned is a history like one of training; NaN leaves a gap.
func learned(n int, name string, broken int) *loop.History {
	h := new(loop.History)
	for i := range n {
		var logs loop.Logs
		v := 2 / float64(i+1)
		if i == broken {
			v = math.NaN()
		}
		logs.Loss("loss", v)
		logs.Loss("loss_val", v+0.2+float64(i)/50)
		logs.Metric(name, 1-v/2.5)
		logs.Output("outputs", []float64{1, 2})
		h.Commit(loop.Elapsed{Steps: int64(44 * (i + 1))}, logs, 32)
	}
	return h
}

func TestPlot(t *testing.T) {
	var svg, page bytes.Buffer
	h := learned(12, "accuracy", 5)
	require.NoError(t, flaxlike.PlotSVG(&svg, h))
	require.Equal(t, 2, strings.Count(svg.String(), "<g "), "losses, and metrics")
	wellFormed(t, svg.String())
	for _, name := range []string{">loss<", ">loss_val<", ">accuracy<", ">steps<"} {
		require.Contains(t, svg.String(), name)
	}
	require.NotContains(t, svg.String(), "NaN")
	require.NotContains(t, svg.String(), "outputs")

	require.NoError(t, flaxlike.PlotHTML(&page, "a run <1>", h, "loss"))
	require.Contains(t, page.String(), "<title>a run &lt;1&gt;</title>")
	require.Contains(t, page.String(), "<th>loss</th><td>0.1667</td><td>0.1667</td><td>2</td>")
	require.NotContains(t, page.String(), "accuracy")
	require.NotRegexp(t, `(src|href)=|https?://[^w]`, page.String(), "nothing from elsewhere")

	require.ErrorContains(t, flaxlike.PlotSVG(io.Discard, new(loop.History)), "no rows")
	require.ErrorIs(t, flaxlike.PlotSVG(io.Discard, h, "los"), loop.ErrNoEntry)
}

func wellFormed(t require.TestingT, text string) {
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		_, err := d.Token()
		if err == io.EOF {
			return
		}
		require.NoError(t, err)
	}
}

// Whatever the values and names are, the picture is XML with finite numbers, and drawn in bounded time.
func TestPlotOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := new(loop.History)
		name := strings.ReplaceAll(rapid.StringMatching(`[a-z<>&"' ]{1,8}`).Draw(t, "name"), ".", "")
		for i, v := range rapid.SliceOfN(rapid.Float64Range(-math.MaxFloat64/4, math.MaxFloat64/4), 1, 20).Draw(t, "values") {
			if rapid.Bool().Draw(t, "odd") {
				v = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 1, 5e-324}).Draw(t, "which")
			}
			var logs loop.Logs
			logs.Metric(name, v)
			h.Commit(loop.Elapsed{Steps: int64(i + 1)}, logs, 1)
		}
		var out bytes.Buffer
		require.NoError(t, flaxlike.PlotSVG(&out, h))
		wellFormed(t, out.String())
		require.NotContains(t, out.String(), "NaN")
		require.NotContains(t, out.String(), "Inf")
		require.Less(t, out.Len(), 20_000)
	})
}
