package plots

import (
	"errors"
	"fmt"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Block is a layer, an input or an output of a network.
type Block struct {
	Name, Kind string
	// Shape is that of its output.
	Shape string
	// Size is how many numbers its variables have.
	Size int64
	// From are the blocks that it takes its input from, by their places; they stand before it.
	From []int
	// Parts are the layers inside of it, in the order in which they run.
	Parts []Block
}

const (
	blockWidth vg.Length = 230
	blockRow   vg.Length = 14
	blockGap   vg.Length = 22
	mostBlocks           = 2000
)

// Network draws the blocks of a network from top to bottom, with arrows from each to those that take its output. Blocks
// that do not wait for each other stand side by side.
func Network(blocks ...Block) *Figure {
	const title = "Network"
	if len(blocks) == 0 {
		return failed(title, errors.New("there are no blocks"))
	}
	n := network{blocks: make([]placed, len(blocks))}
	rows, all := [][]int{}, 0
	for i, b := range blocks {
		if err := b.check(); err != nil {
			return failed(title, fmt.Errorf("block %d: %w", i, err))
		}
		row := 0
		for _, from := range b.From {
			if from < 0 || from >= i {
				return failed(title, fmt.Errorf("block %d (%q) takes the output of block %d, which does not stand before it", i,
					b.Name, from))
			}
			row = max(row, n.blocks[from].row+1)
		}
		for len(rows) <= row {
			rows = append(rows, nil)
		}
		rows[row] = append(rows[row], i)
		n.blocks[i] = placed{lines: b.lines(0), from: append([]int(nil), b.From...), row: row}
		if all += len(n.blocks[i].lines); all > mostBlocks {
			return failed(title, fmt.Errorf("more than %d layers cannot be drawn: take some of them", mostBlocks))
		}
	}
	widest := 0
	for _, row := range rows {
		widest = max(widest, len(row))
	}
	n.width = vg.Length(widest)*(blockWidth+blockGap) - blockGap + 2 // for the width of edges
	lanes := n.lanes()
	n.width += lanes
	y := vg.Length(2)
	for _, row := range rows {
		tallest := vg.Length(0)
		x := (n.width - lanes - vg.Length(len(row))*(blockWidth+blockGap) + blockGap) / 2
		for _, i := range row {
			b := &n.blocks[i]
			b.x, b.y = x, y
			x += blockWidth + blockGap
			tallest = max(tallest, b.height())
		}
		y += tallest + blockGap
	}
	n.height = y - blockGap + 4
	return &Figure{title: title, panels: []panel{{fmt.Sprintf("diagram of %d blocks", len(blocks)), n.width, n.height,
		n.draw}}}
}

func (b Block) check() error {
	if b.Size < 0 {
		return fmt.Errorf("%q has %d numbers", b.Name, b.Size)
	}
	for _, p := range b.Parts {
		if len(p.From) > 0 {
			return fmt.Errorf("%q is a part of %q, which has no arrows to it: leave From out", p.Name, b.Name)
		}
		if err := p.check(); err != nil {
			return err
		}
	}
	return nil
}

type network struct {
	blocks        []placed
	width, height vg.Length
}

// placed is a block where it is drawn.
type placed struct {
	lines []blockLine
	from  []int
	row   int
	x, y  vg.Length
}

// blockLine is a line of text: of the block itself, or of a part, moved to the right.
type blockLine struct {
	left, right string
	depth       int
}

func (b Block) lines(depth int) []blockLine {
	name := b.Kind
	if b.Name != "" {
		name = b.Name + "  " + b.Kind
	}
	lines := []blockLine{{name, b.Shape, depth}}
	switch {
	case b.Size > 0 && depth == 0:
		lines = append(lines, blockLine{"", thousands(b.Size) + " parameters", 0})
	case b.Size > 0:
		lines[0].right += "  " + thousands(b.Size)
	}
	for _, p := range b.Parts {
		lines = append(lines, p.lines(depth+1)...)
	}
	return lines
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (p placed) height() vg.Length { return blockRow*vg.Length(len(p.lines)) + 6 }

const laneWidth vg.Length = 10

// lanes is the room to the right for arrows that pass rows by.
func (n network) lanes() vg.Length {
	if long := n.long(); long > 0 {
		return laneWidth * vg.Length(long+1)
	}
	return 0
}

func (n network) long() (count int) {
	for _, b := range n.blocks {
		for _, from := range b.from {
			count += btoi(b.row-n.blocks[from].row > 1)
		}
	}
	return count
}

func (n network) draw(c canvas) {
	style := draw.LineStyle{Color: grey, Width: 1}
	lane := 0
	right := n.width - n.lanes()
	for _, b := range n.blocks {
		for k, f := range b.from {
			from := n.blocks[f]
			x0, y0 := from.x+blockWidth/2, from.y+from.height()
			// Several arrows end side by side.
			x1, y1 := b.x+blockWidth*vg.Length(k+1)/vg.Length(len(b.from)+1), b.y
			var path []vg.Point
			if b.row-from.row > 1 {
				lane++
				x := right + laneWidth*vg.Length(lane)
				path = []vg.Point{c.at(from.x+blockWidth, y0-8), c.at(x, y0-8), c.at(x, y1-blockGap/2), c.at(x1, y1-blockGap/2),
					c.at(x1, y1)}
			} else {
				middle := y1 - blockGap/2
				path = []vg.Point{c.at(x0, y0), c.at(x0, middle), c.at(x1, middle), c.at(x1, y1)}
			}
			c.StrokeLines(style, path)
			c.FillPolygon(grey, []vg.Point{c.at(x1, y1), c.at(x1-3.5, y1-6), c.at(x1+3.5, y1-6)})
		}
	}
	for _, b := range n.blocks {
		fill := light
		c.box(b.x, b.y, blockWidth, b.height(), fill, blue)
		for i, l := range b.lines {
			y := b.y + 3 + blockRow*(vg.Length(i)+0.5)
			indent := 6 + 10*vg.Length(l.depth)
			room := blockWidth - indent - 6
			w := writing{align: draw.XRight, colour: grey}
			right := w.cut(clean(l.right), room*0.6)
			c.text(b.x+blockWidth-6, y, 0, w, right)
			c.text(b.x+indent, y, room-w.width(right)-6, writing{bold: l.depth == 0}, l.left)
		}
	}
}
