package main

import (
	"math"
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/xla/ops"
)

// A pole is hinged on a cart without friction. Each step an action pushes the cart left (0) or right (1) with force F.
// The accelerations, with the pole's angle θ from the vertical, are those of Barto, Sutton and Anderson (1983), by
// Euler's method:
//
//	θ'' = (g sin θ - cos θ (F + m l θ'² sin θ)/M) / (l (4/3 - m cos² θ/M))
//	x'' = (F + m l (θ'² sin θ - θ'' cos θ)) / M
//
// Each step that begins with the pole up has reward 1. An episode ends when pole or cart is out of bounds, or after the
// horizon.
const (
	gravity  = 9.8
	poleMass = 0.1 // m, kg
	mass     = 1.1 // M, of cart and pole, kg
	half     = 0.5 // l, half the pole's length, m
	force    = 10  // F, N
	interval = 0.02
	farthest = 2.4                // from the middle, m
	steepest = 12 * math.Pi / 180 // of the pole
	horizon  = 500
	tilt     = 0.05 // first states are from -tilt to tilt
)

// x, x', θ, θ'
type pole [4]float32

func draw(random *rand.Rand) (p pole) {
	for i := range p {
		p[i] = tilt * (2*random.Float32() - 1)
	}
	return p
}

func (p pole) push(action int32) pole {
	sin, cos := float32(math.Sin(float64(p[2]))), float32(math.Cos(float64(p[2])))
	push := (force*float32(2*action-1) + poleMass*half*p[3]*p[3]*sin) / mass
	turn := (gravity*sin - cos*push) / (half * (4./3 - poleMass/mass*cos*cos))
	return pole{
		p[0] + interval*p[1], p[1] + interval*(push-poleMass*half/mass*turn*cos),
		p[2] + interval*p[3], p[3] + interval*turn,
	}
}

func (p pole) up() bool {
	return max(p[0], -p[0]) <= farthest && max(p[2], -p[2]) <= steepest
}

// pole.push in a graph, for states [n, 4] and actions [n]
func push(states, actions *graph.Node) *graph.Node {
	v := graph.Split(states, 1, 4)
	sin, cos := graph.Sin(v[2]), graph.Cos(v[2])
	sign := graph.AddScalar(graph.MulScalar(graph.ExpandAxes(graph.ConvertDType(actions, states.DType()), 1), 2), -1)
	push := graph.DivScalar(graph.Add(graph.MulScalar(sign, force), graph.MulScalar(graph.Mul(graph.Square(v[3]), sin), poleMass*half)), mass)
	turn := graph.Div(graph.Sub(graph.MulScalar(sin, gravity), graph.Mul(cos, push)),
		graph.MulScalar(graph.AddScalar(graph.MulScalar(graph.Square(cos), -poleMass/mass), 4./3), half))
	run := graph.Sub(push, graph.MulScalar(graph.Mul(turn, cos), poleMass*half/mass))
	return graph.Add(states, graph.MulScalar(graph.Concatenate([]*graph.Node{v[1], run, v[3], turn}, 1), interval))
}

func up(states *graph.Node) *graph.Node {
	v := graph.Split(graph.Abs(states), 1, 4)
	return graph.Squeeze(graph.LogicalAnd(graph.LessOrEqual(v[0], graph.Const(states.Graph(), float32(farthest))),
		graph.LessOrEqual(v[2], graph.Const(states.Graph(), float32(steepest)))), 1)
}

// play plays an episode from each first state [n, 4]. choose returns actions [n] for states [n, 4]. The results are
// states [horizon, n, 4], actions [horizon, n] and rewards [horizon, n], 0 after an episode's end.
func play(first *graph.Node, choose func(states *graph.Node) *graph.Node) (states, actions, rewards *graph.Node) {
	all := []*graph.Node{first, up(first)}
	_, episodes := ops.Scan(all, nil, func(now, _ []*graph.Node) (next, out []*graph.Node) {
		action := choose(now[0])
		moved := graph.Where(now[1], push(now[0], action), now[0]) // finished episodes do not move
		return []*graph.Node{moved, graph.LogicalAnd(now[1], up(moved))}, []*graph.Node{now[0], action, now[1]}
	}, ops.Length(horizon))
	for i, e := range episodes {
		episodes[i] = graph.StopGradient(e)
	}
	return episodes[0], episodes[1], graph.ConvertDType(episodes[2], first.DType())
}
