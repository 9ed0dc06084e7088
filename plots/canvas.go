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

// Sizes in points: of a panel with axes, of what is below its legend, and between panels.
const (
	panelWidth vg.Length = 330
	plotHeight vg.Length = 180
	gap        vg.Length = 14
)

// colours are those of Okabe and Ito (2008), which people with any colour vision tell apart; their yellow is left out,
// because it is too light for a line on white.
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

// canvas is drawn on from its upper left corner.
type canvas struct {
	draw.Canvas
	// missing is where it is noted that the font lacks a character; nil where the reader's own fonts have it.
	missing *error
}

func (c canvas) at(x, y vg.Length) vg.Point { return vg.Point{X: c.Min.X + x, Y: c.Max.Y - y} }

// part is a rectangle of it.
func (c canvas) part(x, y, width, height vg.Length) canvas {
	c.Rectangle = vg.Rectangle{Min: c.at(x, y+height), Max: c.at(x+width, y)}
	return c
}

func (c canvas) corners(x, y, width, height vg.Length) []vg.Point {
	return []vg.Point{c.at(x, y), c.at(x+width, y), c.at(x+width, y+height), c.at(x, y+height), c.at(x, y)}
}

// box is a rectangle, filled and with an edge; a nil colour leaves that out.
func (c canvas) box(x, y, width, height vg.Length, fill, edge color.Color) {
	if fill != nil {
		c.FillPolygon(fill, c.corners(x, y, width, height))
	}
	if edge != nil {
		c.StrokeLines(draw.LineStyle{Color: edge, Width: 0.75}, c.corners(x, y, width, height))
	}
}

// writing is how a text is written: the zero value is small, dark and begins at its place.
type writing struct {
	large, bold bool
	colour      color.Color
	align       text.XAlignment
	upwards     bool // turned by a quarter
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

// text writes one line, with its middle at y, cut to a width unless that is 0.
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

// cut ends a text that is too long in "…".
func (w writing) cut(s string, width vg.Length) string {
	style := w.style()
	if style.Width(s) <= width {
		return s
	}
	runes := []rune(s)
	low, high := 0, min(len(runes), int(width)) // no character is narrower than a point
	for low < high {
		if mid := (low + high + 1) / 2; style.Width(string(runes[:mid])+"…") <= width {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return string(runes[:low]) + "…"
}

// cutBefore is a name and a figure behind it, of which the name is cut alone.
func (w writing) cutBefore(name, figure string, width vg.Length) string {
	return w.cut(name, max(0, width-w.width(figure))) + figure
}

// lacking is the error about a character that the font does not have.
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

// clean makes a name one line that XML can hold.
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
