package plots

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/lazo-ml/lazo/internal/regular"
)

// Figure is a picture with panels. Err and each method that writes it return errors in its data.
type Figure struct {
	title   string
	caption string
	panels  []panel
	table   [][]string
	err     error
}

type panel struct {
	alt           string
	width, height vg.Length
	draw          func(canvas)
}

func failed(title string, err error) *Figure {
	return &Figure{title: title, err: fmt.Errorf("plots: %s: %w", title, err)}
}

// Err returns the error that prevents writing, or nil.
func (f *Figure) Err() error { return f.err }

// Caption returns the figure with a text below its title, which pages wrap and images truncate.
func (f *Figure) Caption(text string) *Figure {
	of := *f
	of.caption = text
	return &of
}

// Titled returns the figure with another title.
func (f *Figure) Titled(title string) *Figure {
	of := *f
	of.title = title
	return &of
}

// Title returns the title.
func (f *Figure) Title() string { return f.title }

// SVG writes one drawing.
func (f *Figure) SVG(w io.Writer) error {
	if err := f.drawable(); err != nil {
		return err
	}
	var alts []string
	if f.caption != "" {
		alts = append(alts, f.caption)
	}
	for _, p := range f.panels {
		alts = append(alts, p.alt)
	}
	whole := panel{alt: f.title + ": " + strings.Join(alts, "; ")}
	whole.width, whole.height, whole.draw = f.layout()
	_, err := io.WriteString(w, whole.svg())
	return err
}

// PNG writes an image with 2 x 2 pixels for each of the SVG. Its error may be [ErrGlyph].
func (f *Figure) PNG(w io.Writer) error {
	if err := f.drawable(); err != nil {
		return err
	}
	width, height, drawn := f.layout()
	if width*height > maxArea {
		return fmt.Errorf("plots: %s: as an image it would be %.0f by %.0f pixels: write an SVG",
			f.title, width.Dots(dpi), height.Dots(dpi))
	}
	c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(dpi))}
	var missing error
	drawn(canvas{Canvas: draw.New(c), missing: &missing})
	if missing != nil {
		return fmt.Errorf("plots: %s: %w", f.title, missing)
	}
	_, err := c.WriteTo(w)
	return err
}

const (
	dpi = 192
	// about 120 million pixels
	maxArea vg.Length = 4100 * 4100
)

// ErrGlyph means that the image font lacks a character.
var ErrGlyph = errors.New("the font of images has no such character")

// HTML writes a self-contained page, whose panels wrap with the window's width.
func (f *Figure) HTML(w io.Writer) error {
	if f.err != nil {
		return f.err
	}
	_, err := io.WriteString(w, page(f.title, f.section(1)))
	return err
}

// Save writes a .svg, .png or .html file, atomically.
func (f *Figure) Save(path string) error {
	ways := map[string]func(io.Writer) error{".svg": f.SVG, ".png": f.PNG, ".html": f.HTML}
	write := ways[strings.ToLower(filepath.Ext(path))]
	if write == nil {
		return fmt.Errorf("plots: save %s: a name that ends in .svg, .png or .html is expected", path)
	}
	var text bytes.Buffer
	if err := write(&text); err != nil {
		return err
	}
	return replace(path, text.Bytes())
}

func replace(path string, content []byte) error {
	if err := regular.Replace(path, func(f *os.File) error { _, err := f.Write(content); return err }); err != nil {
		return fmt.Errorf("plots: save %s: %w", path, err)
	}
	return nil
}

func (f *Figure) layout() (width, height vg.Length, drawn func(canvas)) {
	const (
		most             = 2*panelWidth + gap
		margin vg.Length = 8
	)
	heading := vg.Length(22)
	if f.caption != "" {
		heading += 14
	}
	at := make([]vg.Point, len(f.panels))
	x, y, row := vg.Length(0), heading, vg.Length(0)
	title := writing{large: true, bold: true}
	width = max(title.width(f.title), min(writing{}.width(f.caption), most))
	for i, p := range f.panels {
		if x > 0 && x+p.width > most {
			x, y = 0, y+row+gap
			row = 0
		}
		at[i] = vg.Point{X: x, Y: y}
		width, row = max(width, x+p.width), max(row, p.height)
		height = max(height, y+row)
		x += p.width + gap
	}
	width, height = width+2*margin, height+2*margin
	return width, height, func(c canvas) {
		c.box(0, 0, width, height, white, nil)
		c = c.part(margin, margin, width-2*margin, height-2*margin)
		c.text(0, 8, 0, title, f.title)
		if f.caption != "" {
			c.text(0, 23, width-2*margin, writing{colour: grey}, f.caption)
		}
		for i, p := range f.panels {
			p.draw(c.part(at[i].X, at[i].Y, p.width, p.height))
		}
	}
}

func (p panel) svg() string {
	drawing := vgsvg.New(p.width, p.height)
	p.draw(canvas{Canvas: draw.New(drawing)})
	var text bytes.Buffer
	if _, err := drawing.WriteTo(&text); err != nil {
		panic(err) // bytes.Buffer cannot fail
	}
	_, rest, _ := strings.Cut(text.String(), "<g ")
	// Few systems other than Linux have Liberation Sans; Arial has the same widths.
	rest = strings.ReplaceAll(rest, "style=\"font-family:Liberation Sans;", "style=\"")
	rest = strings.ReplaceAll(rest, "font-variant:normal;", "")
	rest = strings.ReplaceAll(rest, "xlink:href=\"data:image/jpg;", "xlink:href=\"data:image/png;")
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" xmlns:xlink=\"http://www.w3.org/1999/xlink\" "+
		"width=\"%.5gpt\" height=\"%.5gpt\" viewBox=\"0 0 %.5[1]g %.5[2]g\" "+
		"font-family=\"Liberation Sans,Arimo,Arial,Helvetica,sans-serif\" role=\"img\" aria-label=\"%[3]s\">\n<g %[4]s",
		p.width.Points(), p.height.Points(), html.EscapeString(clean(p.alt)), rest)
}

func (f *Figure) section(level int) string {
	var s strings.Builder
	wide := ""
	if len(f.panels) > 1 {
		wide = " class=\"wide\""
	}
	fmt.Fprintf(&s, "<section%s><h%d>%s</h%[2]d>\n", wide, level, html.EscapeString(clean(f.title)))
	if f.caption != "" {
		fmt.Fprintf(&s, "<p>%s</p>\n", html.EscapeString(clean(f.caption)))
	}
	if len(f.panels) > 0 {
		s.WriteString("<div class=\"panels\">\n")
	}
	for _, p := range f.panels {
		class := "panel"
		if p.width > panelWidth || p.height > 2*panelWidth {
			class = "panel large"
		}
		fmt.Fprintf(&s, "<div class=%q style=\"width:%.5gpt\">%s</div>\n", class, p.width.Points(), p.svg())
	}
	if len(f.panels) > 0 {
		s.WriteString("</div>\n")
	}
	if len(f.table) > 0 {
		s.WriteString(table(f.table))
	}
	s.WriteString("</section>\n")
	return s.String()
}

func page(title, body string) string {
	return fmt.Sprintf(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>%[1]s</title>
<style>
body{font-family:Liberation Sans,Arimo,Arial,Helvetica,sans-serif;
  color:#222;background:#fff;margin:1.5em;line-height:1.4}
h1,h2,h3{line-height:1.2;overflow-wrap:anywhere}
table{border-collapse:collapse;margin:0 0 1em}
th,td{padding:.2em 1em .2em 0;text-align:left;vertical-align:top;overflow-wrap:anywhere}
th{font-weight:normal;color:#555;min-width:6em}
.rows{max-width:100%%;overflow-x:auto}
.rows th{min-width:0}
.rows td,.rows th{overflow-wrap:normal;padding-right:.8em}
.rows td{max-width:45em}
.rows tr:first-child{border-bottom:1px solid #ddd}
.rows .text{min-width:10em}
.rows .number{text-align:right}
.rows td.number{white-space:nowrap}
section p{margin:-.5em 0 .8em;color:#555;overflow-wrap:anywhere}
.figures,.panels{display:flex;flex-wrap:wrap;gap:.5em 2em;align-items:flex-start}
section{max-width:100%%}
.wide{flex-basis:100%%}
.panel{max-width:100%%}
.panel svg{display:block;width:100%%;height:auto}
.large{overflow:auto}
.large svg{width:auto;max-width:none}
@media(max-width:32em){body{margin:1em}.rows td,.rows th{padding-right:.5em;font-size:.85em}}
</style></head>
<body>
%[2]s</body></html>
`, html.EscapeString(clean(title)), body)
}
