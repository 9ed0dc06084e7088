package plots_test

import (
	"bytes"
	"encoding/xml"
	"image"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/metrics/plots"
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
		logs.Loss("loss_val", 2/float64(i+1)+0.2+float64(i)/50)
		logs.Metric(name, 1-2/float64(i+1)/2.5)
		logs.Output("outputs", []float64{1, 2})
		h.Commit(loop.Elapsed{Steps: int64(44 * (i + 1))}, logs, 32)
	}
	return h
}

// drawing has the content of an SVG.
type drawing struct {
	texts  []string
	lines  []stroke
	counts map[string]int // elements
}

type stroke struct {
	path, colour string
	dashed       bool
}

// parts are the strokes that a line has between gaps, by their points.
func (d drawing) dashed(colour string) (full, dashed int) {
	for _, l := range d.lines {
		switch {
		case l.colour != colour || strings.Count(l.path, "L") < 2: // two points are a tick, or a line of the legend
		case l.dashed:
			dashed++
		default:
			full++
		}
	}
	return full, dashed
}

// read checks that a text is XML with finite numbers, and takes it apart.
func read(t require.TestingT, svg string) drawing {
	d := drawing{counts: map[string]int{}}
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		d.counts[start.Name.Local]++
		attributes := map[string]string{}
		for _, a := range start.Attr {
			attributes[a.Name.Local] = a.Value
		}
		switch start.Name.Local {
		case "text":
			text, err := decoder.Token()
			require.NoError(t, err)
			if words, ok := text.(xml.CharData); ok {
				d.texts = append(d.texts, string(words))
			}
		case "path":
			require.NotRegexp(t, "NaN|Inf", attributes["d"])
			colour := regexp.MustCompile("stroke:(#[0-9A-F]*)").FindStringSubmatch(attributes["style"])
			if colour != nil {
				d.lines = append(d.lines, stroke{attributes["d"], colour[1], strings.Contains(attributes["style"], "dasharray")})
			}
		}
	}
	return d
}

func svgOf(t require.TestingT, f *plots.Figure) drawing {
	var out bytes.Buffer
	require.NoError(t, f.SVG(&out))
	return read(t, out.String())
}

const blue = "#0072B2"

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

// A file appears whole or not at all, and its name says what it is.
func TestSave(t *testing.T) {
	h, dir := learned(3, "accuracy", -1), t.TempDir()
	for _, name := range []string{"a.svg", "a.PNG", "a.html"} {
		require.NoError(t, plots.History(h).Save(filepath.Join(dir, name)))
	}
	file, err := os.Open(filepath.Join(dir, "a.PNG"))
	require.NoError(t, err)
	defer file.Close()
	shown, err := png.Decode(file)
	require.NoError(t, err)
	require.Equal(t, 1840, shown.Bounds().Dx(), "two panels in a row, at two pixels")
	page, err := os.ReadFile(filepath.Join(dir, "a.html"))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(page), "<svg "), "a drawing a panel")
	read(t, string(page[bytes.Index(page, []byte("<body>")):bytes.Index(page, []byte("</html>"))]))
	selfContained(t, string(page))
	require.Contains(t, string(page), "<th>loss</th><td>0.6667</td><td>0.6667</td><td>2</td>")

	require.ErrorContains(t, plots.History(h).Save(filepath.Join(dir, "a.jpg")), "ends in .svg, .png or .html")
	require.ErrorContains(t, plots.History(h).Save(filepath.Join(dir, "none", "a.svg")), "no such file")
	require.Error(t, plots.History(nil).Save(filepath.Join(dir, "b.svg")))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3)
}

// selfContained finds nothing that a browser would ask others for.
func selfContained(t *testing.T, page string) {
	t.Helper()
	for _, link := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		require.True(t, strings.HasPrefix(link[1], "data:"), link[0])
	}
	require.NotRegexp(t, `<script|<link|@import|url\(`, page)
}

// A character that an image's font lacks is an error there, and text in an SVG.
func TestPNG_lacksCharacters(t *testing.T) {
	f := plots.History(learned(2, "損失", -1))
	require.NoError(t, f.SVG(io.Discard))
	err := f.PNG(io.Discard)
	require.ErrorIs(t, err, plots.ErrGlyph)
	require.ErrorContains(t, err, "損")
}

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
		plots.Sample{Image: colours, Label: "cat", Predicted: "<b>", Probability: 1}, plots.Sample{Image: grey,
			Predicted: "new"}).SVG(&out))
	d := read(t, out.String())
	require.Equal(t, []string{"Samples", "cat (50.0%)", "right", "<b> (100.0%)", "wrong: is cat", "new (0.0%)"}, d.texts)
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

func TestHistograms(t *testing.T) {
	nan := float32(math.NaN())
	d := svgOf(t, plots.Histograms(plots.Weights{Name: "0/kernel", Values: []float32{-1, 0, 0, 0, 1, nan}},
		plots.Weights{Name: "none", Values: []float32{nan}}))
	for _, text := range []string{"0/kernel", "6 weights", "1 not finite", "mean 0", "standard deviation 0.6325", "3",
		"none", "1 weight"} {
		require.Contains(t, d.texts, text)
	}
	require.ErrorContains(t, plots.Histograms().Err(), "no variables")
	require.ErrorContains(t, plots.Histograms(plots.Weights{Name: "x"}).Err(), `"x" has no numbers`)
}

func TestNetwork(t *testing.T) {
	d := svgOf(t, plots.Network(plots.Block{Name: "x", Kind: "input", Shape: "Float32 [32, 4]"},
		plots.Block{Name: "0", Kind: "Residual", Shape: "Float32 [32, 8]", Size: 12345, From: []int{0},
			Parts: []plots.Block{{Name: "0/0", Kind: "Dense", Size: 12345}}},
		plots.Block{Name: "1", Kind: "Dense", From: []int{1, 0}, Size: 9}))
	require.Equal(t, []string{"Network", "Float32 [32, 4]", "x  input", "Float32 [32, 8]", "0  Residual",
		"12,345 parameters",
		"12,345", "0/0  Dense", "1  Dense", "9 parameters"}, words(d.texts))
	arrows := 0
	for _, l := range d.lines {
		arrows += btoi(l.colour == "#767676")
	}
	require.Equal(t, 3, arrows)
	long := []plots.Block{{}}
	for i := range 1900 {
		long = append(long, plots.Block{From: []int{i}})
	}
	require.NoError(t, plots.Network(long...).Err())
	require.ErrorContains(t, plots.Network(long...).PNG(io.Discard), "write an SVG")
	require.ErrorContains(t, plots.Network(append(long, long...)...).Err(), "more than 2000 layers")
	require.ErrorContains(t, plots.Network().Err(), "no blocks")
	require.ErrorContains(t, plots.Network(plots.Block{From: []int{0}}).Err(), "does not come before it")
	require.ErrorContains(t, plots.Network(plots.Block{Parts: []plots.Block{{From: []int{0}}}}).Err(), "leave From out")
}

// words are the texts that have any.
func words(texts []string) (some []string) {
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			some = append(some, strings.TrimSpace(text))
		}
	}
	return some
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

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
	page, err := os.ReadFile(filepath.Join(dir, plots.ReportName))
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
	left, err := os.ReadFile(filepath.Join(dir, plots.ReportName))
	require.NoError(t, err)
	require.Equal(t, page, left, "a report that fails leaves the one that is there")
}

// A share is rounded to all or nothing only where it is that.
func TestConfusion_roundsToNeitherEnd(t *testing.T) {
	d := svgOf(t, plots.Confusion([][]int{{1069399, 366}, {0, 1}}, []string{"a", "b"}))
	require.Contains(t, d.texts, "1069400 of 1069766 examples are right (>99.9%)")
	d = svgOf(t, plots.Confusion([][]int{{9999, 1}, {0, 10000}}, []string{"a", "b"}))
	for _, text := range []string{"19999 of 20000 examples are right (>99.9%)", ">99.9%", "<0.1%", "0.0%", "100.0%"} {
		require.Contains(t, d.texts, text)
	}
	grey, err := plots.Image([]float32{0}, 1, 1, 1, 0, 1)
	require.NoError(t, err)
	d = svgOf(t, plots.Samples(plots.Sample{Image: grey, Predicted: "a", Probability: 0.99999},
		plots.Sample{Image: grey, Predicted: "a", Probability: 1e-9}))
	require.Equal(t, []string{"Samples", "a (>99.9%)", "a (<0.1%)"}, words(d.texts))
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
