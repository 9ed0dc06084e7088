package plots

import (
	"fmt"
	"image/color"
	"strings"
	"unicode"

	"golang.org/x/image/font/sfnt"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

const (
	panelWidth vg.Length = 330
	plotHeight vg.Length = 180
	gap        vg.Length = 14
)

// colours are those of Okabe and Ito (2008) without yellow, too light on white.
var (
	blue      = color.RGBA{0x00, 0x72, 0xB2, 0xFF}
	vermilion = color.RGBA{0xD5, 0x5E, 0x00, 0xFF}
	colours   = []color.Color{blue, vermilion, color.RGBA{0x00, 0x9E, 0x73, 0xFF}, color.RGBA{0xCC, 0x79, 0xA7, 0xFF},
		color.RGBA{0xE6, 0x9F, 0x00, 0xFF}, color.RGBA{0x56, 0xB4, 0xE9, 0xFF}, color.RGBA{0, 0, 0, 0xFF}}

	white = color.Gray{0xFF}
	light = color.RGBA{0xF2, 0xF7, 0xFB, 0xFF}
	pale  = color.Gray{0xDD}
	grey  = color.Gray{0x76}
	dark  = color.Gray{0x22}
)

var (
	full   []vg.Length
	dashed = []vg.Length{5, 3}
	dotted = []vg.Length{1.5, 2.5}
)

type canvas struct {
	draw.Canvas
	// missing records a character that the font lacks; nil: the viewer's fonts.
	missing *error
}

func (c canvas) at(x, y vg.Length) vg.Point { return vg.Point{X: c.Min.X + x, Y: c.Max.Y - y} }

func (c canvas) part(x, y, width, height vg.Length) canvas {
	c.Rectangle = vg.Rectangle{Min: c.at(x, y+height), Max: c.at(x+width, y)}
	return c
}

func (c canvas) corners(x, y, width, height vg.Length) []vg.Point {
	return []vg.Point{c.at(x, y), c.at(x+width, y), c.at(x+width, y+height), c.at(x, y+height), c.at(x, y)}
}

func (c canvas) box(x, y, width, height vg.Length, fill, edge color.Color) {
	if fill != nil {
		c.FillPolygon(fill, c.corners(x, y, width, height))
	}
	if edge != nil {
		c.StrokeLines(draw.LineStyle{Color: edge, Width: 0.75}, c.corners(x, y, width, height))
	}
}

type writing struct {
	large, bold bool
	colour      color.Color
	align       text.XAlignment
	upwards     bool
}

func (w writing) style() text.Style {
	s := text.Style{Color: dark, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: 9}, XAlign: w.align,
		YAlign: draw.YCenter, Handler: plot.DefaultTextHandler}
	if w.large {
		s.Font.Size = 11
	}
	if w.bold {
		s.Font.Weight = 3 // golang.org/x/image/font.WeightBold
	}
	if w.colour != nil {
		s.Color = w.colour
	}
	if w.upwards {
		s.Rotation = quarter
	}
	return s
}

const quarter = 3.14159265358979 / 2

func (w writing) width(s string) vg.Length { return w.style().Width(clean(s)) }

// text writes one line, centred at y, truncated to width if not 0.
func (c canvas) text(x, y, width vg.Length, w writing, s string) {
	s = clean(s)
	style := w.style()
	if width > 0 {
		s = w.cut(s, width)
	}
	if c.missing != nil && *c.missing == nil {
		*c.missing = lacking(style.Font, s)
	}
	c.FillText(style, c.at(x, y), s)
}

func (w writing) cut(s string, width vg.Length) string {
	style := w.style()
	if style.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	low, high := 0, min(len(runes), int(width)) // at least a point each
	for low < high {
		if mid := (low + high + 1) / 2; style.Width(string(runes[:mid])+"…") <= width {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return string(runes[:low]) + "…"
}

func (w writing) cutBefore(name, figure string, width vg.Length) string {
	return w.cut(name, max(0, width-w.width(figure))) + figure
}

func lacking(f font.Font, s string) error {
	face := font.DefaultCache.Lookup(f, f.Size)
	var buffer sfnt.Buffer
	for _, r := range s {
		if i, err := face.Face.GlyphIndex(&buffer, r); err != nil || i == 0 {
			return fmt.Errorf("%q in %q: %w: write an SVG or HTML", r, s, ErrGlyph)
		}
	}
	return nil
}

func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == 0xFFFE, r == 0xFFFF:
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
