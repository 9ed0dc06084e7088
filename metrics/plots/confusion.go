package plots

import (
	"errors"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Confusion draws a confusion matrix, like [Classified.Counts], of at most 200 classes. A cell shows the count and its
// share of the row, darker for larger shares. Above 25 classes cells have only colours.
func Confusion(counts [][]int, classes []string) *Figure {
	const title = "Confusion matrix"
	if err := checkCounts(counts, classes); err != nil {
		return failed(title, err)
	}
	right, all := 0, 0
	totals := make([]int, len(counts))
	for i, row := range counts {
		for _, n := range row {
			totals[i] += n
		}
		all += totals[i]
		right += row[i]
	}
	if all == 0 {
		return failed(title, errors.New("there are no examples"))
	}
	rows := make([][]int, len(counts))
	for i := range counts {
		rows[i] = append(rows[i], counts[i]...)
	}
	m := matrix{rows: rows, totals: totals, names: append([]string(nil), classes...),
		note: fmt.Sprintf("%d of %d examples are right (%s)", right, all, percent(right, all))}
	m.measure()
	return &Figure{title: title, panels: []panel{{"Confusion matrix of " +
		fmt.Sprint(len(classes)) + " classes: " + m.note, m.width(), m.height(), m.draw}}}
}

const (
	mostClasses = 200
	mostNumbers = 25
)

func checkCounts(counts [][]int, classes []string) error {
	if err := checkClasses(classes); err != nil {
		return err
	}
	if len(classes) > mostClasses {
		return fmt.Errorf("%d classes are more than the %d that can be drawn: take the counts of some", len(classes),
			mostClasses)
	}
	if len(counts) != len(classes) {
		return fmt.Errorf("the counts have %d rows for %d classes", len(counts), len(classes))
	}
	for i, row := range counts {
		if len(row) != len(classes) {
			return fmt.Errorf("row %d of the counts has %d columns for %d classes", i, len(row), len(classes))
		}
		sum := 0
		for k, n := range row {
			if n < 0 || n > math.MaxInt-sum {
				return fmt.Errorf("the count of label %q and prediction %q is %d: it must not be negative or overflow", classes[i],
					classes[k], n)
			}
			sum += n
		}
	}
	return nil
}

func percent(n, of int) string { return share(float64(n) / float64(of)) }

func share(of float64) string {
	switch {
	case of > 0 && of < 0.001:
		return "<0.1%"
	case of < 1 && of > 0.999:
		return ">99.9%"
	}
	return fmt.Sprintf("%.1f%%", 100*of)
}

type matrix struct {
	rows              [][]int
	totals            []int
	names             []string
	note              string
	cell, name, below vg.Length
	turned            bool
}

const matrixHead vg.Length = 22

func (m *matrix) measure() {
	longest := vg.Length(0)
	for _, n := range m.names {
		longest = max(longest, writing{}.width(n))
	}
	m.name = min(longest, 110)
	m.cell = 12
	if len(m.names) <= mostNumbers {
		m.cell = 38
		for i, row := range m.rows {
			for _, n := range row {
				m.cell = max(m.cell, writing{}.width(fmt.Sprint(n))+8, writing{}.width(m.share(i, n))+8)
			}
		}
	}
	m.turned = m.name > m.cell-4
	m.below = legendRow
	if m.turned {
		m.below = m.name + 6
	}
}

func (m *matrix) side() vg.Length   { return m.cell * vg.Length(len(m.names)) }
func (m *matrix) left() vg.Length   { return 16 + m.name + 6 }
func (m *matrix) width() vg.Length  { return max(m.left()+m.side()+2, 200) }
func (m *matrix) height() vg.Length { return matrixHead + m.side() + m.below + 20 }

func (m *matrix) share(row, n int) string {
	if m.totals[row] == 0 {
		return "–"
	}
	return percent(n, m.totals[row])
}

func (m *matrix) draw(c canvas) {
	c.text(0, 6, m.width(), writing{}, m.note)
	left := m.left()
	for i, row := range m.rows {
		y := matrixHead + m.cell*vg.Length(i)
		c.text(left-6, y+m.cell/2, m.name, writing{align: draw.XRight}, m.names[i])
		for k, n := range row {
			x := left + m.cell*vg.Length(k)
			fill, ink := shade(n, m.totals[i])
			c.box(x, y, m.cell, m.cell, fill, white)
			if len(m.names) <= mostNumbers {
				c.text(x+m.cell/2, y+m.cell/2-6, 0, writing{align: draw.XCenter, colour: ink, bold: i == k}, fmt.Sprint(n))
				c.text(x+m.cell/2, y+m.cell/2+6, 0, writing{align: draw.XCenter, colour: ink}, m.share(i, n))
			}
		}
		x, below := left+m.cell*(vg.Length(i)+0.5), matrixHead+m.side()
		if m.turned {
			c.text(x, below+5, m.name, writing{align: draw.XRight, upwards: true}, m.names[i])
		} else {
			c.text(x, below+9, m.cell, writing{align: draw.XCenter}, m.names[i])
		}
	}
	c.text(5, matrixHead+m.side()/2, 0, writing{align: draw.XCenter, upwards: true, colour: grey}, "label")
	c.text(left+m.side()/2, matrixHead+m.side()+m.below+9, 0, writing{align: draw.XCenter, colour: grey}, "prediction")
}

func shade(n, of int) (fill, ink color.Color) {
	share := 0.0
	if of > 0 {
		share = float64(n) / float64(of)
	}
	mix := func(from, to float64) uint8 { return uint8(from + (to-from)*math.Sqrt(share)) }
	fill = color.RGBA{mix(0xF2, 0x00), mix(0xF5, 0x45), mix(0xF8, 0x80), 0xFF}
	if share > 0.4 {
		return fill, white
	}
	return fill, dark
}
