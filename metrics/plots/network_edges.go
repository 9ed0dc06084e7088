package plots

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// edge is an arrow: down to a track between two rows, along it, and down. Lanes to the right of all blocks pass rows.
type edge struct {
	from, to int
	path     []vg.Point
}

const (
	track     vg.Length = 8  // between two lines
	aboveHead vg.Length = 13 // for an arrow's head below the last track
)

type span struct {
	from      int
	low, high vg.Length
	at        int
}

// apart numbers spans, overlapping ones differently.
func apart(spans []*span) (numbers int) {
	slices.SortStableFunc(spans, func(a, b *span) int { return cmp.Compare(a.low, b.low) })
	var ends []vg.Length
	for _, s := range spans {
		s.at = slices.IndexFunc(ends, func(end vg.Length) bool { return end+track/2 < s.low })
		if s.at < 0 {
			s.at = len(ends)
			ends = append(ends, 0)
		}
		ends[s.at] = s.high
	}
	return len(ends)
}

func spanOf(spans map[int]*span, from int, at vg.Length) {
	s := spans[from]
	if s == nil {
		s = &span{from: from, low: at, high: at}
		spans[from] = s
	}
	s.low, s.high = min(s.low, at), max(s.high, at)
}

func listed(spans map[int]*span) (list []*span) {
	for _, s := range spans {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *span) int { return cmp.Compare(a.from, b.from) })
	return list
}

func (p placed) middle() vg.Length { return p.x + blockWidth/2 }

func (n *network) place(rows [][]int) {
	widest := 0
	for _, row := range rows {
		widest = max(widest, len(row))
	}
	blocks := vg.Length(widest)*(blockWidth+blockGap) - blockGap + 2
	for _, row := range rows {
		x := (blocks - vg.Length(len(row))*(blockWidth+blockGap) + blockGap) / 2
		for _, i := range row {
			n.blocks[i].x = x
			x += blockWidth + blockGap
		}
	}
	lanes := map[int]*span{} // by source block; ends are rows
	for i, b := range n.blocks {
		for _, from := range b.from {
			n.edges = append(n.edges, edge{from: from, to: i})
			if row := n.blocks[from].row; b.row > row+1 {
				spanOf(lanes, from, vg.Length(row)*2*track) // two lanes of one number need a row between them
				spanOf(lanes, from, vg.Length(b.row)*2*track)
			}
		}
	}
	n.width = blocks
	if count := apart(listed(lanes)); count > 0 {
		n.width += track*vg.Length(count) + 4
	}
	lane := func(from int) vg.Length { return blocks + track*vg.Length(lanes[from].at+1) }

	ports := n.ports(rows)
	tracks := make([]map[int]*span, len(rows))
	for row := range tracks {
		tracks[row] = map[int]*span{}
	}
	for k, e := range n.edges {
		from, to := n.blocks[e.from], n.blocks[e.to]
		spanOf(tracks[from.row+1], e.from, from.middle())
		spanOf(tracks[to.row], e.from, ports[k])
		if to.row > from.row+1 {
			spanOf(tracks[from.row+1], e.from, lane(e.from))
			spanOf(tracks[to.row], e.from, lane(e.from))
		}
	}
	y := vg.Length(2)
	tops := make([]vg.Length, len(rows))
	for r, row := range rows {
		if r > 0 {
			count := apart(slices.DeleteFunc(listed(tracks[r]), func(s *span) bool { return s.low == s.high })) // straight down
			tops[r] = y + track
			y += max(blockGap, track*vg.Length(count)+aboveHead)
		}
		tallest := vg.Length(0)
		for _, i := range row {
			n.blocks[i].y = y
			tallest = max(tallest, n.blocks[i].height())
		}
		y += tallest
	}
	n.height = y + 4
	at := func(row, from int) vg.Length { return tops[row] + track*vg.Length(tracks[row][from].at) }
	for k := range n.edges {
		e := &n.edges[k]
		from, to := n.blocks[e.from], n.blocks[e.to]
		e.path = []vg.Point{{X: from.middle(), Y: from.y + from.height()}}
		add := func(x, y vg.Length) { e.path = append(e.path, vg.Point{X: x, Y: y}) }
		if to.row > from.row+1 {
			add(from.middle(), at(from.row+1, e.from))
			add(lane(e.from), at(from.row+1, e.from))
			add(lane(e.from), at(to.row, e.from))
			add(ports[k], at(to.row, e.from))
		} else if ports[k] != from.middle() {
			add(from.middle(), at(to.row, e.from))
			add(ports[k], at(to.row, e.from))
		}
		add(ports[k], to.y)
	}
}

// ports are the upper ends of edges, left to right, clear of blocks' lines.
func (n network) ports(rows [][]int) []vg.Length {
	ports := make([]vg.Length, len(n.edges))
	first := 0
	for i, b := range n.blocks {
		order := make([]int, len(b.from))
		for k := range order {
			order[k] = k
		}
		slices.SortStableFunc(order, func(j, k int) int {
			left, right := n.blocks[b.from[j]], n.blocks[b.from[k]]
			return cmp.Or(cmp.Compare(btoi(b.row > left.row+1), btoi(b.row > right.row+1)), cmp.Compare(left.x, right.x))
		})
		parts := vg.Length(len(order) + 1)
		if len(order) > 7 {
			parts += 2 // room to shift
		}
		low := b.x
		for place, k := range order {
			x := max(b.x+blockWidth*vg.Length(place+1)/parts, low+min(track, blockWidth/parts))
			for n.taken(rows, i, b.from[k], x) {
				x += track
			}
			ports[first+k], low = x, x
		}
		first += len(b.from)
	}
	return ports
}

func (n network) taken(rows [][]int, block, from int, x vg.Length) bool {
	row := n.blocks[block].row
	return row > 0 && slices.ContainsFunc(rows[row-1], func(i int) bool {
		return i != from && math.Abs(float64(n.blocks[i].middle()-x)) < float64(track)-1
	})
}

func (n network) drawEdges(c canvas) {
	for _, e := range n.edges {
		var path []vg.Point
		for _, p := range e.path {
			path = append(path, c.at(p.X, p.Y))
		}
		c.StrokeLines(draw.LineStyle{Color: grey, Width: 1}, path)
	}
	type stretch struct {
		from         int
		at, low, end vg.Length
	}
	var along, down []stretch
	for _, e := range n.edges {
		for k := 1; k < len(e.path); k++ {
			p, q := e.path[k-1], e.path[k]
			if p.Y == q.Y {
				along = append(along, stretch{e.from, p.Y, min(p.X, q.X), max(p.X, q.X)})
			} else {
				down = append(down, stretch{e.from, p.X, p.Y, q.Y})
			}
		}
	}
	slices.SortFunc(along, func(a, b stretch) int { return cmp.Compare(a.at, b.at) })
	for _, d := range down {
		first, _ := slices.BinarySearchFunc(along, d.low, func(a stretch, y vg.Length) int { return cmp.Compare(a.at, y) })
		for _, a := range along[first:] {
			if a.at > d.end {
				break
			}
			if a.from != d.from && a.low < d.at && d.at < a.end {
				c.box(d.at-2.5, a.at-1, 5, 2, white, nil)
				c.box(d.at-0.5, a.at-2, 1, 4, grey, nil)
			}
		}
	}
	for _, at := range n.partings() {
		c.DrawGlyphNoClip(draw.GlyphStyle{Color: grey, Radius: 2, Shape: draw.CircleGlyph{}}, c.at(at.X, at.Y))
	}
	for _, e := range n.edges {
		x, y := e.path[len(e.path)-1].X, e.path[len(e.path)-1].Y
		c.FillPolygon(grey, []vg.Point{c.at(x, y), c.at(x-3.5, y-6), c.at(x+3.5, y-6)})
	}
}

func (n network) partings() (at []vg.Point) {
	of := make([][]edge, len(n.blocks))
	for _, e := range n.edges {
		of[e.from] = append(of[e.from], e)
	}
	for _, edges := range of {
		ways := map[vg.Point][4]bool{} // up, down, left, right
		var corners []vg.Point
		for _, e := range edges {
			for _, p := range e.path[1 : len(e.path)-1] {
				if _, known := ways[p]; !known {
					ways[p] = [4]bool{}
					corners = append(corners, p)
				}
			}
		}
		for _, p := range corners {
			way := ways[p]
			for _, e := range edges {
				for k := 1; k < len(e.path); k++ {
					a, b := e.path[k-1], e.path[k]
					if a.X == b.X && a.X == p.X {
						way[0] = way[0] || min(a.Y, b.Y) < p.Y && p.Y <= max(a.Y, b.Y)
						way[1] = way[1] || min(a.Y, b.Y) <= p.Y && p.Y < max(a.Y, b.Y)
					}
					if a.Y == b.Y && a.Y == p.Y {
						way[2] = way[2] || min(a.X, b.X) < p.X && p.X <= max(a.X, b.X)
						way[3] = way[3] || min(a.X, b.X) <= p.X && p.X < max(a.X, b.X)
					}
				}
			}
			if btoi(way[0])+btoi(way[1])+btoi(way[2])+btoi(way[3]) > 2 {
				at = append(at, p)
			}
		}
	}
	return at
}
