package ops_test

import (
	"math"
	"math/rand/v2"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/xla/ops"
)

// control is the control flow that a drawn program is built with.
type control struct {
	choose func(condition *node, yes, no func() []*node) []*node
	while  func(condition func(v []*node) *node, body func(v []*node) []*node, v ...*node) []*node
	nudge  *rand.Rand // if set, all values are changed by a share of nudge after each step, as rounding changes them
}

// The reference runs on GoMLX's backend in Go, where Scan calls its body place by place. It computes both branches, and
// runs a while for its maximum number of iterations.
var (
	ours      = control{choose: ops.Cond, while: ops.While}
	reference = control{
		choose: func(condition *node, yes, no func() []*node) []*node {
			a, b := yes(), no()
			for i := range a {
				a[i] = graph.Where(condition, a[i], b[i])
			}
			return a
		},
		while: func(condition func(v []*node) *node, body func(v []*node) []*node, v ...*node) []*node {
			for range mostTurns {
				next, more := body(v), condition(v)
				for i := range next {
					next[i] = graph.Where(more, next[i], v[i])
				}
				v = next
			}
			return v
		},
	}
)

const mostTurns = 4

// draw builds the program of a seed, the same in each call. x is [3, 2], w is [2, 2].
func draw(c control, seed uint64, depth int, x, w *node) *node {
	r := rand.New(rand.NewPCG(seed, 1))
	g := x.Graph()
	for range 1 + r.IntN(3) {
		inner, kind := r.Uint64(), r.IntN(9)
		if depth == 0 {
			kind %= 5
		}
		switch kind {
		case 0:
			x = graph.Tanh(graph.Dot(x, w).Product())
		case 1:
			x = graph.Add(graph.Sin(x), graph.MulScalar(x, r.Float64()))
		case 2:
			x = graph.Mul(x, graph.Logistic(graph.Reverse(x, 0)))
		case 3:
			x = graph.Sub(x, graph.ReduceAndKeep(x, graph.ReduceMean, 0))
		case 4:
			x = graph.Add(x, graph.Sin(graph.BroadcastToDims(graph.ReduceAndKeep(w, graph.ReduceSum, 0), 3, 2)))
		case 5, 6: // over the rows of x, or a number of places
			over, options := []*node{graph.Concatenate([]*node{x, graph.Mul(x, x)}, 0)}, []ops.Option{}
			if kind == 6 {
				over, options = nil, append(options, ops.Length(1+r.IntN(3)))
			}
			for _, o := range []ops.Option{ops.Reverse(), ops.Remat()} {
				if r.IntN(2) == 0 {
					options = append(options, o)
				}
			}
			before := x
			last, outs := ops.Scan([]*node{x, graph.Const(g, int32(1))}, over, func(carry, at []*node) (next, out []*node) {
				y := carry[0]
				if len(at) > 0 {
					y = graph.Add(y, graph.BroadcastToDims(graph.Reshape(at[0], 1, 2), 3, 2))
				}
				y = draw(c, inner, depth-1, graph.Add(graph.MulScalar(y, 0.5), graph.Cos(before)), w)
				y = graph.Div(y, graph.ConvertDType(carry[1], dtypes.Float64))
				return []*node{y, graph.AddScalar(carry[1], 1)}, []*node{graph.ReduceSum(graph.Mul(y, y), 1)}
			}, options...)
			x = graph.Add(last[0], graph.Reshape(graph.ReduceSum(outs[0], 0), 3, 1))
		case 7:
			before := x
			x = c.choose(graph.GreaterThan(graph.ReduceAllSum(x), graph.Scalar(g, dtypes.Float64, r.Float64()-0.5)),
				func() []*node { return []*node{draw(c, inner, depth-1, before, w)} },
				func() []*node { return []*node{draw(c, inner+1, depth-1, graph.Sin(before), w)} })[0]
		case 8: // it has no gradient
			fixed := graph.StopGradient(x)
			most := graph.Const(g, int32(r.IntN(mostTurns)))
			v := c.while(func(v []*node) *node {
				return graph.And(graph.LessThan(v[1], most), graph.LessThan(graph.ReduceAllMax(v[0]), graph.Scalar(g, dtypes.Float64, 3)))
			}, func(v []*node) []*node {
				return []*node{draw(c, inner, depth-1, graph.Add(v[0], fixed), graph.StopGradient(w)), graph.AddScalar(v[1], 1)}
			}, fixed, graph.Const(g, int32(0)))
			x = graph.Add(x, graph.StopGradient(v[0]))
		}
		if c.nudge != nil {
			shares := make([]float64, 6)
			for i := range shares {
				shares[i] = 1 + nudge*float64(2*c.nudge.IntN(2)-1)
			}
			x = graph.Mul(x, graph.Reshape(graph.Const(g, shares), 3, 2))
		}
	}
	return x
}

// Results must agree with the reference to tolerance. A drawn program may amplify rounding by up to 1e30. Then the
// difference may be unsure times the change in some nudged runs of either. (Program 723 computes a mean of six equal
// numbers of 1e151, which is exactly 0 only in lazo.)
const (
	tolerance = 1e-8
	nudge     = 1e-14
	nudged    = 3 // runs
	unsure    = 10
)

// distance is the largest difference of two lists' elements, +Inf if only one of a pair is finite or they are different
// non-finite values. finite reports whether all of want are finite.
func distance(want, got []float64) (most float64, finite bool) {
	finite = true
	for k, v := range want {
		switch d := math.Abs(got[k] - v); {
		case got[k] == v || math.IsNaN(v) && math.IsNaN(got[k]):
		case math.IsNaN(d):
			most = math.Inf(1)
		default:
			most = max(most, d)
		}
		finite = finite && !math.IsNaN(v) && !math.IsInf(v, 0)
	}
	return most, finite
}

// agrees reports whether all elements agree to tolerance.
func agrees(want, got []float64) bool {
	for k, v := range want {
		d, finite := distance(want[k:k+1], got[k:k+1])
		if finite && d > tolerance*max(1, v, -v) || !finite && d > 0 {
			return false
		}
	}
	return true
}
