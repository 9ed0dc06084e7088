package main

import (
	"fmt"
	"math"
	"strings"
)

type point struct {
	of   string
	at   int
	cost float64 // us per step
}

func draw(points []point) string {
	const width, height, margin = 300, 240, 48
	var svg strings.Builder
	panels := [][]point{}
	for i, p := range points {
		if i == 0 || p.of != points[i-1].of {
			panels = append(panels, nil)
		}
		last := len(panels) - 1
		panels[last] = append(panels[last], p)
	}
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", width*len(panels), height+2)
	fmt.Fprintf(&svg, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	for i, panel := range panels {
		x := scale{math.Log10(float64(panel[0].at)), math.Log10(float64(panel[len(panel)-1].at)), float64(i*width + margin), float64((i+1)*width - 12)}
		low, high := math.Inf(1), math.Inf(-1)
		for _, p := range panel {
			low, high = min(low, math.Log10(p.cost)), max(high, math.Log10(p.cost))
		}
		y := scale{math.Floor(low), math.Ceil(high + 1e-9), height - margin, 24}
		fmt.Fprintf(&svg, `<text x="%g" y="14" font-weight="bold">%s</text>`+"\n", x.from, panel[0].of)
		for decade := y.low; decade <= y.high; decade++ {
			fmt.Fprintf(&svg, `<line x1="%g" x2="%g" y1="%g" y2="%[3]g" stroke="#ddd"/><text x="%g" y="%g" text-anchor="end">%g us</text>`+"\n",
				x.from, x.to, y.at(decade), x.from-4, y.at(decade)+4, math.Pow(10, decade))
		}
		var line []string
		for _, p := range panel {
			px, py := x.at(math.Log10(float64(p.at))), y.at(math.Log10(p.cost))
			line = append(line, fmt.Sprintf("%.1f,%.1f", px, py))
			fmt.Fprintf(&svg, `<circle cx="%.1f" cy="%.1f" r="3" fill="#1f77b4"/><text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", px, py, px, height-margin+16, p.at)
		}
		fmt.Fprintf(&svg, `<polyline points="%s" fill="none" stroke="#1f77b4" stroke-width="1.5"/>`+"\n", strings.Join(line, " "))
		end := min(x.high-x.low, y.high-math.Log10(panel[0].cost))
		fmt.Fprintf(&svg, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#999" stroke-dasharray="4 3"/>`+"\n",
			x.at(x.low), y.at(math.Log10(panel[0].cost)), x.at(x.low+end), y.at(math.Log10(panel[0].cost)+end))
	}
	fmt.Fprintf(&svg, `<text x="%d" y="%d" fill="#666">us a step; dashed: a cost that grows as the size does</text>`+"\n</svg>\n", margin, height-8)
	return svg.String()
}

type scale struct{ low, high, from, to float64 }

func (s scale) at(v float64) float64 {
	if s.high == s.low {
		return s.from
	}
	return s.from + (v-s.low)/(s.high-s.low)*(s.to-s.from)
}
