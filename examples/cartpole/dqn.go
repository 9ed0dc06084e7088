package main

import (
	"iter"
	"math/rand/v2"
	"strings"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
)

// dqn is a step of DQN (Mnih et al. 2015) on a batch from the replay buffer, with the targets of Double DQN (van
// Hasselt et al. 2016). The target network is an earlier policy.
func dqn(b *managed.Builder) {
	const discount, renewed = 0.99, 20
	best := graph.ArgMax(policy(b, b.Field("next")), -1)
	worth := graph.Mul(b.Field("up"), at(network(b.Scope().At("target"), b.Field("next"), 2), best))
	goal := graph.StopGradient(graph.AddScalar(graph.MulScalar(worth, discount), 1))
	b.Loss("loss", graph.Square(graph.Sub(at(policy(b, b.Field("x")), b.Field("action")), goal)))

	due := graph.IsZero(graph.ModScalar(b.Steps(), renewed))
	for v := range b.Scope().At("policy").IterVariables() {
		copied := b.Scope().Store().GetVariable(strings.Replace(v.Path(), "/policy/", "/target/", 1))
		copied.SetNodeValue(graph.Where(due, v.NodeValue(b.Graph()), copied.NodeValue(b.Graph())))
	}
}

// q returns the values of both actions, [n, 2].
var q = managed.TestStep(func(b *managed.Builder) { b.Output("out", policy(b, b.Field("x"))) }, managed.OutputsAlone())

// replay is the replay buffer with its environments. Checkpoints need both.
type replay struct {
	agent  `json:"-"`
	Poles  []pole
	Ages   []int // steps since the episodes began
	Buffer []transition
	Played int
}

type transition struct {
	State, Next pole
	Action      int32
}

func newReplay(a agent) loop.Source[data.Batch] {
	r := &replay{agent: a, Poles: make([]pole, 8), Ages: make([]int, 8)}
	random := a.random(-1)
	for i := range r.Poles {
		r.Poles[i] = draw(random)
	}
	return r
}

func (r *replay) From(position int64) iter.Seq2[data.Batch, error] {
	return func(yield func(data.Batch, error) bool) {
		for ; ; position++ {
			random := r.random(position)
			for turns := 0; position%64 == 0 && (turns < 16 || r.Played < 1000); turns++ {
				if err := r.play(random); err != nil {
					yield(data.Batch{}, err)
					return
				}
			}
			if !yield(r.batch(128, random), nil) {
				return
			}
		}
	}
}

// epsilon falls from 1 to 0.04.
func (r *replay) play(random *rand.Rand) error {
	const capacity = 50_000
	values, err := r.look(q, r.Poles)
	if err != nil {
		return err
	}
	for i, p := range r.Poles {
		action := random.Int32N(2)
		if random.Float64() > max(0.04, 1-float64(r.Played)/10_000) {
			action = 0
			if values[2*i+1] > values[2*i] {
				action = 1
			}
		}
		r.Poles[i] = p.push(action)
		if t := (transition{p, r.Poles[i], action}); len(r.Buffer) < capacity {
			r.Buffer = append(r.Buffer, t)
		} else {
			r.Buffer[r.Played%capacity] = t
		}
		r.Played, r.Ages[i] = r.Played+1, r.Ages[i]+1
		if !r.Poles[i].up() || r.Ages[i] == horizon {
			r.Poles[i], r.Ages[i] = draw(random), 0
		}
	}
	return nil
}

func (r *replay) batch(n int, random *rand.Rand) data.Batch {
	var states, next []float32
	actions, up := make([]int32, n), make([]float32, n)
	for i := range n {
		t := r.Buffer[random.IntN(len(r.Buffer))]
		states, next, actions[i] = append(states, t.State[:]...), append(next, t.Next[:]...), t.Action
		if t.Next.up() {
			up[i] = 1
		}
	}
	return data.Batch{Fields: []data.Field{data.X(states, n, 4), data.Named("next", next, n, 4),
		data.Named("action", actions, n), data.Named("up", up, n)}}
}
