package plots_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

// selfContained finds nothing that a browser would ask others for.
func selfContained(t *testing.T, page string) {
	t.Helper()
	for _, link := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		require.True(t, strings.HasPrefix(link[1], "data:"), link[0])
	}
	require.NotRegexp(t, `<script|<link|@import|url\(`, page)
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
