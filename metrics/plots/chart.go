package plots

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The legend covers no line.
type chart struct {
	title          string // "" if the figure's title suffices
	figure         string // follows the title, never truncated
	alt            string
	xLabel, yLabel string
	x, y           axis
	lines          []line
	bars           []bar
	notes          []note
	rows           [][]string
}

type axis struct {
	low, high float64
	log       bool
	whole     bool // ticks at integers only
}

// NaN leaves a gap. mark is a highlighted point.
type line struct {
	name   string // "" has no legend entry
	figure string // follows the name, never truncated
	x, y   []float64
	colour color.Color
	dashes []vg.Length
	thin   bool
	dots   bool // points only
	small  bool // dots of many points
}

type note struct{ name, figure string }

type bar struct{ from, to, height float64 }

const legendRow vg.Length = 13

func (l line) style() draw.LineStyle {
	s := draw.LineStyle{Color: l.colour, Width: 1.6, Dashes: l.dashes}
	if l.thin {
		s.Width = 0.8
	}
	return s
}

func (l line) dot() draw.GlyphStyle {
	if l.small {
		return draw.GlyphStyle{Color: l.colour, Radius: 1.5, Shape: draw.CircleGlyph{}}
	}
	return draw.GlyphStyle{Color: l.colour, Radius: 3, Shape: draw.CircleGlyph{}}
}

type entry struct {
	line   *line
	name   string
	figure string
	x, row vg.Length
}

const sample vg.Length = 20

func (l line) sample() vg.Length {
	if l.dots {
		return 8
	}
	return sample
}

func (c *chart) legend() (entries []entry, rows int) {
	for i, l := range c.lines {
		if l.name != "" {
			entries = append(entries, entry{line: &c.lines[i], name: l.name, figure: l.figure})
		}
	}
	for _, n := range c.notes {
		entries = append(entries, entry{name: n.name, figure: n.figure})
	}
	var x vg.Length
	for i := range entries {
		e := &entries[i]
		e.name = writing{}.cutBefore(clean(e.name), e.figure, panelWidth-sample-8)
		width := writing{}.width(e.name) + 12
		if e.line != nil {
			width += e.line.sample() + 4
		}
		if rows == 0 {
			rows = 1
		}
		if x > 0 && x+width > panelWidth {
			x = 0
			rows++
		}
		e.x, e.row = x, vg.Length(rows-1)
		x += width
	}
	return entries, rows
}

func (c *chart) panel() panel {
	entries, rows := c.legend()
	top := vg.Length(0)
	if c.title != "" {
		top = 18
	}
	head := top + legendRow*vg.Length(rows) + 7
	alt := c.alt
	if alt == "" {
		alt = c.title
	}
	return panel{alt, panelWidth, head + plotHeight, func(to canvas) {
		if c.title != "" {
			heading := writing{large: true, bold: true}
			to.text(0, 8, 0, heading, heading.cutBefore(clean(c.title), c.figure, panelWidth))
		}
		for _, e := range entries {
			x, y := e.x, top+legendRow*e.row+legendRow/2
			if e.line != nil {
				if e.line.dots {
					to.DrawGlyphNoClip(e.line.dot(), to.at(x+4, y))
				} else {
					to.StrokeLine2(e.line.style(), to.at(x, y).X, to.at(x, y).Y, to.at(x+sample, y).X, to.at(x+sample, y).Y)
				}
				x += e.line.sample() + 4
			}
			to.text(x, y, 0, writing{}, e.name)
		}
		c.plot().Draw(to.part(0, head, panelWidth-4, plotHeight).Canvas)
	}}
}

func (c *chart) plot() *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	grid := plotter.NewGrid()
	grid.Vertical.Color = nil
	grid.Horizontal = draw.LineStyle{Color: pale, Width: 0.5}
	p.Add(grid)
	for _, b := range c.bars {
		p.Add(b)
	}
	for _, l := range c.lines {
		p.Add(l)
	}
	for _, of := range []struct {
		to    *plot.Axis
		from  axis
		label string
	}{{&p.X, c.x, c.xLabel}, {&p.Y, c.y, c.yLabel}} {
		of.to.Min, of.to.Max = of.from.low, of.from.high
		of.to.Padding = 3
		of.to.LineStyle = draw.LineStyle{Color: grey, Width: 0.5}
		of.to.Tick.LineStyle, of.to.Tick.Length = of.to.LineStyle, 3
		of.to.Label.Text = of.label
		of.to.Label.TextStyle = writing{}.style()
		of.to.Label.TextStyle.XAlign, of.to.Label.TextStyle.YAlign = draw.XCenter, draw.YBottom
		of.to.Tick.Label.Font = of.to.Label.TextStyle.Font
		of.to.Tick.Label.Color = dark
		of.to.Tick.Marker = plot.ConstantTicks(of.from.ticks())
		if of.from.log {
			of.to.Scale = plot.LogScale{}
		}
	}
	return p
}

func (l line) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	var part []vg.Point
	end := func() {
		switch {
		case len(part) == 1 || l.dots:
			for _, at := range part {
				c.DrawGlyphNoClip(l.dot(), at)
			}
		case len(part) > 1:
			c.StrokeLines(l.style(), part)
		}
		part = nil
	}
	for i := range l.y {
		if !finite(l.y[i]) {
			end()
			continue
		}
		part = append(part, vg.Point{X: x(l.x[i]), Y: y(l.y[i])})
	}
	end()
}

func (b bar) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	low := y(p.Y.Min)
	c.FillPolygon(blue, []vg.Point{{X: x(b.from), Y: low}, {X: x(b.to), Y: low}, {X: x(b.to), Y: y(b.height)},
		{X: x(b.from), Y: y(b.height)}})
}

// largest: beyond it differences overflow.
const largest = 1e300

func finite(v float64) bool { return math.Abs(v) <= largest }

func extent(lists ...[]float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, list := range lists {
		for _, v := range list {
			if finite(v) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return low, high
}

func around(lists ...[]float64) axis {
	low, high := extent(lists...)
	size := max(math.Abs(low), math.Abs(high))
	switch {
	case low > high:
		return axis{low: 0, high: 1}
	case high-low <= size*1e-9 || high-low < 1e-290:
		apart := max(size/2, 1e-3)
		return axis{low: low - apart, high: high + apart}
	}
	return axis{low: low, high: high}
}

func (a axis) wider() axis {
	apart := (a.high - a.low) / 20
	a.low, a.high = a.low-apart, a.high+apart
	return a
}

func decades(lists ...[]float64) axis {
	low, high := extent(lists...)
	if low > high {
		return axis{low: 0.1, high: 10, log: true}
	}
	if high/low < 10 { // with a power of ten
		middle := math.Log10(low)/2 + math.Log10(high)/2
		low, high = math.Pow(10, middle-0.7), math.Pow(10, middle+0.7)
	}
	return axis{low: low, high: high, log: true}
}

func (a axis) ticks() (ticks []plot.Tick) {
	if a.log {
		first, last := math.Ceil(math.Log10(a.low)-1e-9), math.Floor(math.Log10(a.high)+1e-9)
		step := max(1, math.Ceil((last-first)/5))
		for e := first; e <= last; e += step {
			v := math.Pow(10, e)
			ticks = append(ticks, plot.Tick{Value: v, Label: number(v)})
		}
		return ticks
	}
	apart := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/5)))
	for _, times := range []float64{1, 2, 5, 10} {
		if (a.high-a.low)/(apart*times) <= 6 {
			apart *= times
			break
		}
	}
	if a.whole {
		apart = max(apart, 1)
	}
	for k := math.Ceil(a.low/apart - 1e-9); k*apart <= a.high+apart*1e-9 && len(ticks) < 20; k++ {
		v := k*apart + 0 // no -0
		ticks = append(ticks, plot.Tick{Value: v, Label: number(v)})
	}
	return ticks
}

func number(v float64) string {
	if math.Abs(v) >= 1e4 && math.Abs(v) < 1e15 && v == math.Trunc(v) && math.Mod(v, 1e6) != 0 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// thinned keeps the first, last, least and greatest point of each part. x must ascend.
func thinned(x, y []float64, parts int) (fewX, fewY []float64) {
	if len(x) <= 4*parts {
		return x, y
	}
	for p := range parts {
		from, to := len(x)*p/parts, len(x)*(p+1)/parts
		low, high, gap := from, from, -1
		for i := from; i < to; i++ {
			switch {
			case !finite(y[i]):
				gap = i
			case !finite(y[low]) || y[i] < y[low]:
				low = i
			}
			if finite(y[i]) && (!finite(y[high]) || y[i] > y[high]) {
				high = i
			}
		}
		keep := []int{from, low, high, to - 1}
		if gap >= 0 {
			keep = append(keep, gap)
		}
		slices.Sort(keep)
		for _, i := range slices.Compact(keep) {
			fewX, fewY = append(fewX, x[i]), append(fewY, y[i])
		}
	}
	return fewX, fewY
}
