package plots

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Block is a layer, an input or an output of a network.
type Block struct {
	Name, Kind string
	// Shape is its output's.
	Shape string
	// Size is the number of trainable parameters, Fixed other values, like batch normalization statistics.
	Size, Fixed int64
	// From are the indices of its input blocks, smaller than its own.
	From []int
	// Parts are its layers, in execution order.
	Parts []Block
}

const (
	blockWidth vg.Length = 230
	blockRow   vg.Length = 14
	blockGap   vg.Length = 22
	mostBlocks           = 2000
)

// Network draws the blocks from top to bottom, independent ones next to each other. Only arrows from the same block
// share a line; a dot marks the branch, a gap a crossing.
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
				return failed(title, fmt.Errorf("block %d (%q) takes the output of block %d, which does not come before it", i,
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
	n.place(rows)
	return &Figure{title: title, panels: []panel{{fmt.Sprintf("diagram of %d blocks", len(blocks)), n.width, n.height,
		n.draw}}}
}

func (b Block) check() error {
	if b.Size < 0 || b.Fixed < 0 {
		return fmt.Errorf("%q has %d parameters and %d other numbers", b.Name, b.Size, b.Fixed)
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
	edges         []edge // in the order of their targets
	width, height vg.Length
}

type placed struct {
	lines []blockLine
	from  []int
	row   int
	x, y  vg.Length
}

type blockLine struct {
	name, kind, right string // name is truncated before kind
	depth             int
}

func (b Block) lines(depth int) []blockLine {
	l := blockLine{b.Name, b.Kind, b.Shape, depth}
	if b.Name != "" {
		l.kind = "  " + b.Kind
	}
	lines := []blockLine{l}
	switch size := b.size(depth == 0); {
	case size != "" && depth == 0:
		lines = append(lines, blockLine{right: size})
	case size != "":
		lines[0].right += "  " + size
	}
	for _, p := range b.Parts {
		lines = append(lines, p.lines(depth+1)...)
	}
	return lines
}

func (b Block) size(inWords bool) string {
	var said []string
	if b.Size > 0 {
		said = append(said, thousands(b.Size))
		if inWords {
			said[0] += " parameters"
		}
	}
	if b.Fixed > 0 {
		said = append(said, thousands(b.Fixed)+" not trainable")
	}
	return strings.Join(said, ", ")
}

func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (p placed) height() vg.Length { return blockRow*vg.Length(len(p.lines)) + 6 }

func (n network) draw(c canvas) {
	n.drawEdges(c)
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
			w = writing{bold: l.depth == 0}
			room -= writing{}.width(right) + 6
			c.text(b.x+indent, y, 0, w, w.cutBefore(clean(l.name), w.cut(clean(l.kind), room*0.8), room))
		}
	}
}
