package ops

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/xla"
)

// Option is a setting of [Scan].
type Option func(*scan)

// Length sets the number of places: required without xs, else equal to theirs.
func Length(n int) Option { return func(s *scan) { s.length, s.lengthGiven = n, true } }

// Reverse iterates from the last place to the first. Each output stays at its place.
func Reverse() Option { return func(s *scan) { s.reverse = true } }

// Lengths counts each example's places, integers [batch]. At later places an example's carried values do not change and
// its outputs are 0. Both then have the batch as first axis. In reverse, an example starts at its own last place.
func Lengths(lengths *graph.Node) Option {
	return func(s *scan) { s.lengths, s.masked = lengths, true }
}

// Axis is the axis of the places in xs and outputs, default 0. Sequences [batch, places, …] need Axis(1).
func Axis(axis int) Option { return func(s *scan) { s.axis = axis } }

// Remat makes the gradient keep only the carried values and recompute all else, for less memory and more time.
func Remat() Option { return func(s *scan) { s.remat = true } }

type scan struct {
	length              int
	lengthGiven, masked bool
	lengths             *graph.Node
	reverse, remat      bool
	axis                int
}

// Scan calls body for each place of xs, arrays stacked along an axis, with the carried values (carry at first) and
// xs's elements there. It returns the last carried values, and the outputs stacked as xs.
//
// The body must return carried values of the same shapes and dtypes. xs and outputs may be empty. There must be at
// least one place.
//
// The gradient iterates in the opposite direction. For each place it keeps the carried values and the results of
// costly operations, and recomputes the rest. XLA's CPU runs convolutions in loops slowly: see docs/layers.md.
func Scan(carry, xs []*graph.Node, body func(carry, x []*graph.Node) (next, out []*graph.Node), options ...Option) (last, outs []*graph.Node) {
	var s scan
	for _, o := range options {
		if o != nil {
			o(&s)
		}
	}
	g, err := s.check(carry, xs, body)
	if err != nil {
		panic(fmt.Errorf("ops: scan: %w", err))
	}
	if s.axis != 0 {
		xs = slices.Clone(xs)
		for i, x := range xs {
			xs[i] = moveAxis(x, s.axis, 0)
		}
	}
	turn := func(carry, at, place []*graph.Node) (next, out []*graph.Node) {
		next, out = body(slices.Clone(carry), at)
		checkCarry("scan", carry, next)
		checkGiven("scan: output", out)
		if s.masked {
			return s.mask(carry, slices.Clone(next), slices.Clone(out), place[0]) // next and out may be the same slice
		}
		return next, out
	}
	var places []*graph.Node
	if s.masked {
		places = []*graph.Node{graph.Iota(g, shapes.Make(dtypes.Int32, s.length), 0)}
	}
	if xla.IsEager(g) || !hasLoops(g) {
		last, outs = s.unrolled(g, carry, xs, places, turn)
	} else {
		l := autodiff.Loop{Length: s.length, Reverse: s.reverse, Remat: s.remat}
		last, outs = run(l, g, "scan", carry, slices.Concat(xs, places), func(carry, at []*graph.Node) (next, out []*graph.Node) {
			return turn(carry, at[:len(xs)], at[len(xs):])
		})
	}
	for i, o := range outs {
		if s.axis != 0 {
			outs[i] = moveAxis(o, 0, s.axis)
		}
	}
	return last, outs
}

func (s *scan) check(carry, xs []*graph.Node, body func(carry, x []*graph.Node) (next, out []*graph.Node)) (*graph.Graph, error) {
	if body == nil {
		return nil, errors.New("the body is nil")
	}
	all := slices.Concat(carry, xs)
	if s.masked {
		all = append(all, s.lengths)
	}
	if slices.Contains(all, nil) {
		return nil, errors.New("a carried value, a stack or Lengths is nil")
	}
	if len(all) == 0 {
		return nil, errors.New("nothing is carried and nothing is stacked: each turn would be the same")
	}
	if s.axis < 0 {
		return nil, fmt.Errorf("axis %d, expected 0 or more", s.axis)
	}
	for i, x := range xs {
		if x.Rank() <= s.axis {
			return nil, fmt.Errorf("stack %d is %s, expected an axis %d of places", i, x.Shape(), s.axis)
		}
		n := x.Shape().Dimensions[s.axis]
		if !s.lengthGiven {
			s.length, s.lengthGiven = n, true
		}
		if n != s.length {
			return nil, fmt.Errorf("stack %d is %s: %d places along axis %d, expected %d", i, x.Shape(), n, s.axis, s.length)
		}
	}
	switch {
	case !s.lengthGiven:
		return nil, errors.New("the number of places is not known: give Length, or something that is stacked")
	case s.length < 1:
		return nil, fmt.Errorf("%d places, expected at least one", s.length)
	case s.masked && (s.lengths.Rank() != 1 || !s.lengths.DType().IsInt()):
		return nil, fmt.Errorf("Lengths are %s, expected whole numbers [batch]", s.lengths.Shape())
	}
	return all[0].Graph(), nil
}

func (s *scan) mask(carry, next, out []*graph.Node, place *graph.Node) (_, _ []*graph.Node) {
	here := graph.LessThan(graph.ConvertDType(place, s.lengths.DType()), s.lengths)
	for i := range next {
		next[i] = choose("carried value", i, here, next[i], carry[i])
	}
	for i := range out {
		out[i] = choose("output", i, here, out[i], graph.Zeros(out[i].Graph(), out[i].Shape()))
	}
	return next, out
}

func choose(what string, i int, here, yes, no *graph.Node) *graph.Node {
	if yes.Rank() == 0 || yes.Shape().Dimensions[0] != here.Shape().Dimensions[0] {
		panic(fmt.Errorf("ops: scan: %s %d is %s, expected the %d examples of Lengths as its first axis", what, i, yes.Shape(), here.Shape().Dimensions[0]))
	}
	dims := slices.Repeat([]int{1}, yes.Rank())
	dims[0] = here.Shape().Dimensions[0]
	return graph.Where(graph.BroadcastToDims(graph.Reshape(here, dims...), yes.Shape().Dimensions...), yes, no)
}

// hasLoops: GoMLX's backend in Go has no dynamic slices.
func hasLoops(g *graph.Graph) bool {
	can := g.Backend().Capabilities().Operations
	return can[compute.OpTypeDynamicSlice] && can[compute.OpTypeDynamicUpdateSlice]
}

func (s *scan) unrolled(g *graph.Graph, carry, xs, places []*graph.Node, turn func(carry, at, place []*graph.Node) (next, out []*graph.Node)) (last, outs []*graph.Node) {
	last = carry
	at := func(stacks []*graph.Node, place int) []*graph.Node {
		list := make([]*graph.Node, len(stacks))
		for i, x := range stacks {
			list[i] = graph.Reshape(graph.Slice(x, graph.AxisElem(place)), x.Shape().Dimensions[1:]...)
		}
		return list
	}
	var made [][]*graph.Node
	for i := range s.length {
		place := i
		if s.reverse {
			place = s.length - 1 - i
		}
		var out []*graph.Node
		done := again(g, i)
		last, out = turn(last, at(xs, place), at(places, place))
		done()
		if made == nil {
			made = make([][]*graph.Node, len(out))
		}
		if len(out) != len(made) {
			panic(fmt.Errorf("ops: scan: place %d has %d outputs, the first one had %d", place, len(out), len(made)))
		}
		for k, o := range out {
			made[k] = append(made[k], o)
		}
	}
	for _, list := range made {
		if s.reverse {
			slices.Reverse(list)
		}
		outs = append(outs, graph.Stack(list, 0))
	}
	return last, outs
}

func moveAxis(x *graph.Node, from, to int) *graph.Node {
	order := make([]int, 0, x.Rank())
	for i := range x.Rank() {
		if i != from {
			order = append(order, i)
		}
	}
	if to > len(order) {
		panic(fmt.Errorf("ops: scan: an output of rank %d cannot be stacked along axis %d", x.Rank()-1, to))
	}
	return graph.TransposeAllAxes(x, slices.Insert(order, to, from)...)
}
