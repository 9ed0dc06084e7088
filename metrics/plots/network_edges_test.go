package plots_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/metrics/plots"
)

type point struct{ x, y float64 }

var place = regexp.MustCompile(`[ML]([-0-9.]+),([-0-9.]+)`)

// corners are those of a path.
func corners(t require.TestingT, path string) (at []point) {
	for _, p := range place.FindAllStringSubmatch(path, -1) {
		x, err := strconv.ParseFloat(p[1], 64)
		require.NoError(t, err)
		y, err := strconv.ParseFloat(p[2], 64)
		require.NoError(t, err)
		at = append(at, point{x, y})
	}
	return at
}

// overlap returns the length of the intersection of two intervals.
func overlap(a, b, c, d float64) float64 {
	return min(max(a, b), max(c, d)) - max(min(a, b), min(c, d))
}

// No edge can be read as another: lines of two blocks never lie on each other, and no line runs through a block.
func TestNetwork_noEdgeLooksLikeAnother(t *testing.T) {
	check := func(t require.TestingT, blocks []plots.Block) {
		d := svgOf(t, plots.Network(blocks...))
		type line struct {
			from, to int
			at       []point
		}
		var lines []line
		var boxes [][]point
		for _, s := range d.lines {
			switch s.colour {
			case "#767676":
				lines = append(lines, line{at: corners(t, s.path)})
			case blue:
				boxes = append(boxes, corners(t, s.path))
			}
		}
		require.Len(t, boxes, len(blocks))
		k := 0
		for i, b := range blocks {
			for _, from := range b.From {
				lines[k].from, lines[k].to = from, i
				k++
			}
		}
		require.Len(t, lines, k)
		const near = 2
		for _, l := range lines {
			first, last := l.at[0], l.at[len(l.at)-1]
			on := func(p point, box []point, y float64) bool {
				return math.Abs(p.y-y) < 0.1 && box[0].x <= p.x && p.x <= box[1].x
			}
			low := func(box []point) (float64, float64) { return min(box[0].y, box[2].y), max(box[0].y, box[2].y) }
			top, bottom := low(boxes[l.from])
			require.True(t, on(first, boxes[l.from], bottom) || on(first, boxes[l.from], top), "the line begins at its block")
			top, bottom = low(boxes[l.to])
			require.True(t, on(last, boxes[l.to], top) || on(last, boxes[l.to], bottom), "the line ends at its block")
			for k := 1; k < len(l.at); k++ {
				p, q := l.at[k-1], l.at[k]
				for i, box := range boxes {
					if overlap(p.x, q.x, box[0].x, box[1].x) >= 0 && overlap(p.y, q.y, box[0].y, box[2].y) > 0.1 {
						t.Errorf("the line from %d to %d runs behind block %d", l.from, l.to, i)
					}
				}
				for _, m := range lines {
					for j := 1; m.from != l.from && j < len(m.at); j++ {
						r, s := m.at[j-1], m.at[j]
						down := math.Abs(p.x-q.x) < 0.1 && math.Abs(r.x-s.x) < 0.1 && math.Abs(p.x-r.x) < near &&
							overlap(p.y, q.y, r.y, s.y) > -near
						along := math.Abs(p.y-q.y) < 0.1 && math.Abs(r.y-s.y) < 0.1 && math.Abs(p.y-r.y) < near &&
							overlap(p.x, q.x, r.x, s.x) > -near
						if down || along {
							t.Errorf("the line from %d to %d lies on that from %d to %d", l.from, l.to, m.from, m.to)
						}
					}
				}
			}
		}
	}
	// Two inputs, of which both feed one output and one the other; and a connection that skips a block.
	check(t, []plots.Block{{Name: "image"}, {Name: "colour"}, {Name: "digit", From: []int{0, 1}}, {Name: "ink", From: []int{0}}})
	check(t, []plots.Block{{Name: "a"}, {Name: "b", From: []int{0}}, {Name: "c", From: []int{0}}, {Name: "d", From: []int{2}},
		{Name: "e", From: []int{1, 3}}})
	rapid.Check(t, func(t *rapid.T) {
		var blocks []plots.Block
		for i := range rapid.IntRange(1, 14).Draw(t, "blocks") {
			b := plots.Block{Name: fmt.Sprint(i), Kind: "Dense"}
			if i > 0 {
				b.From = rapid.SliceOfNDistinct(rapid.IntRange(0, i-1), 0, min(i, 4), rapid.ID[int]).Draw(t, "from")
			}
			if rapid.Bool().Draw(t, "parts") {
				b.Parts = []plots.Block{{Name: "part"}}
			}
			blocks = append(blocks, b)
		}
		check(t, blocks)
	})
	if to := os.Getenv("NETWORK"); to != "" {
		require.NoError(t, plots.Network(plots.Block{Name: "image", Kind: "input", Shape: "Float32 [32 8 8 1]"},
			plots.Block{Name: "colour", Kind: "input", Shape: "Float32 [32 3]"},
			plots.Block{Name: "trunk", Kind: "Conv", Size: 100, Fixed: 24, From: []int{0}},
			plots.Block{Name: "b", Kind: "Dense", From: []int{2}}, plots.Block{Name: "c", Kind: "Dense", From: []int{2}},
			plots.Block{Name: "digit", Kind: "output", From: []int{1, 2, 4}}, plots.Block{Name: "ink", Kind: "output", From: []int{2, 3}},
			plots.Block{Name: "end of all that comes", Kind: "Concatenate", Shape: "Float32 [32 8 8 100]",
				From: []int{0, 5, 6}}).Save(to))
	}
}
