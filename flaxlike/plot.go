package flaxlike

import (
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/loop"
)

// curve is the points of one name, x in steps.
type curve struct {
	name string
	x, y []float64
}

// panel is curves that share their axes.
type panel struct {
	title  string
	curves []curve
}

// PlotSVG draws the losses of a history and, below, its metrics, as one SVG. With names, only these are drawn, all in
// one panel. The axis below counts steps. Values that are not finite leave a gap.
func PlotSVG(w io.Writer, h *loop.History, names ...string) error {
	panels, err := panelsOf(h, names)
	if err != nil {
		return fmt.Errorf("flaxlike: plot: %w", err)
	}
	_, err = io.WriteString(w, drawing(panels))
	return err
}

// PlotHTML writes the same as a page of its own, with the last and the best values in a table. It needs nothing from
// the network.
func PlotHTML(w io.Writer, title string, h *loop.History, names ...string) error {
	panels, err := panelsOf(h, names)
	if err != nil {
		return fmt.Errorf("flaxlike: plot: %w", err)
	}
	var s strings.Builder
	fmt.Fprintf(&s, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title>\n<style>body{font-family:sans-serif;margin:2em}"+
		"td,th{padding:0 1em;text-align:right}</style></head>\n<body><h1>%[1]s</h1>\n%s<table><tr><th>name</th><th>last</th><th>lowest</th><th>highest</th></tr>\n",
		html.EscapeString(title), drawing(panels))
	for _, p := range panels {
		for _, c := range p.curves {
			low, high := extent([]curve{c}, func(c curve) []float64 { return c.y })
			fmt.Fprintf(&s, "<tr><th>%s</th><td>%.4g</td><td>%.4g</td><td>%.4g</td></tr>\n", html.EscapeString(c.name), c.y[len(c.y)-1], low, high)
		}
	}
	s.WriteString("</table></body></html>\n")
	_, err = io.WriteString(w, s.String())
	return err
}

func panelsOf(h *loop.History, names []string) ([]panel, error) {
	if h == nil || h.Len() == 0 {
		return nil, errors.New("the history has no rows")
	}
	if len(names) > 0 {
		p := panel{title: strings.Join(names, ", ")}
		for _, name := range names {
			at, values, err := h.Series(name)
			if err != nil {
				return nil, err
			}
			c := curve{name: name, y: values}
			for _, e := range at {
				c.x = append(c.x, float64(e.Steps))
			}
			p.curves = append(p.curves, c)
		}
		return []panel{p}, nil
	}
	found := map[string]map[string]*curve{"losses": {}, "metrics": {}}
	for elapsed, logs := range h.Rows() {
		for e := range logs.All() {
			title := "metrics"
			switch {
			case e.Collection == loop.Losses || strings.HasPrefix(e.Name, "avg_"):
				title = "losses"
			case e.Collection != loop.Metrics && e.Collection != loop.Stateful:
				continue
			}
			v, err := e.Value.Float()
			if err != nil {
				continue // an array
			}
			c := found[title][e.Name]
			if c == nil {
				c = &curve{name: e.Name}
				found[title][e.Name] = c
			}
			c.x, c.y = append(c.x, float64(elapsed.Steps)), append(c.y, v)
		}
	}
	var panels []panel
	for _, title := range []string{"losses", "metrics"} {
		p := panel{title: title}
		for _, name := range slices.Sorted(maps.Keys(found[title])) {
			p.curves = append(p.curves, *found[title][name])
		}
		if len(p.curves) > 0 {
			panels = append(panels, p)
		}
	}
	if len(panels) == 0 {
		return nil, errors.New("the history has no numbers")
	}
	return panels, nil
}

// In pixels: a panel, and the margins around what is drawn in it.
const (
	width, height            = 720, 300
	left, right, top, bottom = 70, 160, 36, 40
)

// colours are those of Okabe and Ito (2008), which people with any colour vision tell apart.
var colours = []string{"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"}

func drawing(panels []panel) string {
	var s strings.Builder
	fmt.Fprintf(&s, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n"+
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n", width, height*len(panels))
	for i, p := range panels {
		fmt.Fprintf(&s, "<g transform=\"translate(0,%d)\">\n", i*height)
		p.draw(&s)
		s.WriteString("</g>\n")
	}
	s.WriteString("</svg>\n")
	return s.String()
}

func (p panel) draw(s *strings.Builder) {
	x0, x1 := bounds(p.curves, func(c curve) []float64 { return c.x })
	y0, y1 := bounds(p.curves, func(c curve) []float64 { return c.y })
	px := func(x float64) float64 { return left + (x-x0)/(x1-x0)*(width-left-right) }
	py := func(y float64) float64 { return height - bottom - (y-y0)/(y1-y0)*(height-top-bottom) }
	fmt.Fprintf(s, "<text x=\"%d\" y=\"20\" font-weight=\"bold\">%s</text>\n", left, html.EscapeString(p.title))
	for _, t := range ticks(y0, y1) {
		fmt.Fprintf(s, "<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g</text>\n", left, py(t), width-right, left-6, py(t)+4, t)
	}
	for _, t := range ticks(x0, x1) {
		fmt.Fprintf(s, "<path d=\"M%.1f %dv5\" stroke=\"black\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.6g</text>\n", px(t), height-bottom, px(t), height-bottom+18, t)
	}
	fmt.Fprintf(s, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"black\"/><text x=\"%d\" y=\"%d\" text-anchor=\"end\">steps</text>\n",
		left, top, height-bottom, width-right, width-right, height-6)
	for i, c := range p.curves {
		colour := colours[i%len(colours)]
		fmt.Fprintf(s, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-linecap=\"round\"%s/>\n", c.path(px, py), colour, dash(i))
		y := top + 8 + 16*i
		fmt.Fprintf(s, "<path d=\"M%d %dh18\" stroke=\"%s\" stroke-width=\"3\"%s/><text x=\"%d\" y=\"%d\">%s</text>\n", width-right+8, y, colour, dash(i), width-right+30, y+4, html.EscapeString(c.name))
	}
}

// dash tells curves apart when the colours begin anew.
func dash(i int) string {
	if i < len(colours) {
		return ""
	}
	return ` stroke-dasharray="4 3"`
}

// path begins anew behind a gap. A point alone is a dot of a line's width.
func (c curve) path(px, py func(float64) float64) string {
	var s strings.Builder
	pen := "M"
	for i, y := range c.y {
		if math.IsNaN(y) || math.IsInf(y, 0) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&s, "%s%.1f %.1f", pen, px(c.x[i]), py(y))
		if pen == "M" {
			s.WriteString("h0.1")
		}
		pen = "L"
	}
	return s.String()
}

// extent is the least and the greatest finite number.
func extent(curves []curve, of func(curve) []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, c := range curves {
		for _, v := range of(c) {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return low, high
}

// bounds are the same, but never without a length.
func bounds(curves []curve, of func(curve) []float64) (low, high float64) {
	low, high = extent(curves, of)
	switch {
	case low > high:
		return 0, 1
	case low == high:
		return low - max(1e-3, math.Abs(low)/2), high + max(1e-3, math.Abs(high)/2)
	}
	return low, high
}

// ticks are round numbers: 1, 2 or 5 times a power of ten apart, about five of them.
func ticks(low, high float64) (at []float64) {
	apart := math.Pow(10, math.Floor(math.Log10((high-low)/5)))
	for _, times := range []float64{1, 2, 5, 10} {
		if (high-low)/(apart*times) <= 6 {
			apart *= times
			break
		}
	}
	for k := math.Ceil(low / apart); k*apart <= high; k++ {
		at = append(at, k*apart+0) // +0: no -0
	}
	return at
}
