package main

import (
	"iter"
	"math"
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
)

const (
	parallel  = 8
	minibatch = 500
	passes    = 4
	updates   = passes * parallel * horizon / minibatch
)

// ppo is a step of PPO (Schulman et al. 2017) on a rollout's minibatch.
func ppo(b *managed.Builder) {
	const clip = 0.2
	likelihoods, advantage := graph.LogSoftmax(policy(b, b.Field("x"))), b.Field("advantage")
	ratio := graph.Exp(graph.Sub(at(likelihoods, b.Field("action")), b.Field("likelihood")))
	entropy := graph.Neg(graph.ReduceSum(graph.Mul(graph.Exp(likelihoods), likelihoods), -1))
	b.Loss("policy_loss", graph.Neg(graph.Min(graph.Mul(ratio, advantage), graph.Mul(graph.ClipScalar(ratio, 1-clip, 1+clip), advantage))))
	b.Loss("value_loss", graph.MulScalar(graph.Square(graph.Sub(value(b, b.Field("x")), b.Field("return"))), 0.5))
	b.Loss("entropy_loss", graph.MulScalar(entropy, -0.01))
}

func value(b *managed.Builder, states *graph.Node) *graph.Node {
	return graph.Squeeze(network(b.Scope().At("value").ResetVisited(), states, 1), -1)
}

// scores returns both actions' logits and the value, [n, 3].
var scores = managed.TestStep(func(b *managed.Builder) {
	x := b.Field("x")
	b.Output("out", graph.Concatenate([]*graph.Node{policy(b, x), graph.ExpandAxes(value(b, x), -1)}, -1))
}, managed.OutputsAlone())

// rollout is the policy's latest play, [horizon, parallel]. Checkpoints need it, because training changes the policy.
type rollout struct {
	agent                                    `json:"-"`
	States, Likelihoods, Returns, Advantages []float32
	Actions                                  []int32
}

func newRollout(a agent) loop.Source[data.Batch] { return &rollout{agent: a} }

// From plays before each multiple of updates and returns the rollout's minibatches.
func (r *rollout) From(position int64) iter.Seq2[data.Batch, error] {
	return func(yield func(data.Batch, error) bool) {
		for {
			if position%updates == 0 {
				if err := r.play(r.random(position)); err != nil {
					yield(data.Batch{}, err)
					return
				}
			}
			for b, err := range r.minibatches(position) {
				if !yield(b, err) || err != nil {
					return
				}
				position++
			}
		}
	}
}

func (r *rollout) minibatches(position int64) iter.Seq2[data.Batch, error] {
	n := len(r.Actions)
	set, err := data.New(data.X(r.States, n, 4), data.Named("action", r.Actions, n), data.Named("likelihood", r.Likelihoods, n),
		data.Named("return", r.Returns, n), data.Named("advantage", r.Advantages, n))
	if err != nil {
		return func(yield func(data.Batch, error) bool) { yield(data.Batch{}, err) }
	}
	batches := set.Batches(minibatch, data.Shuffle(r.seed+uint64(position/updates)))
	return data.Take(batches.From(position%updates), updates-position%updates)
}

func (r *rollout) play(random *rand.Rand) error {
	*r = rollout{agent: r.agent}
	poles := make([]pole, parallel)
	for i := range poles {
		poles[i] = draw(random)
	}
	var values []float32
	var fallen []bool
	for range horizon {
		out, err := r.look(scores, poles)
		if err != nil {
			return err
		}
		for i, p := range poles {
			action, likelihood := choose(out[3*i:], random)
			poles[i] = p.push(action)
			values, fallen = append(values, out[3*i+2]), append(fallen, !poles[i].up())
			r.States, r.Actions, r.Likelihoods = append(r.States, p[:]...), append(r.Actions, action), append(r.Likelihoods, likelihood)
			if !poles[i].up() {
				poles[i] = draw(random)
			}
		}
	}
	last, err := r.look(scores, poles)
	if err != nil {
		return err
	}
	for i := range poles {
		values = append(values, last[3*i+2])
	}
	r.estimate(values, fallen)
	return nil
}

func choose(logits []float32, random *rand.Rand) (action int32, likelihood float32) {
	gap := float64(logits[1] - logits[0])
	if random.Float64() < 1/(1+math.Exp(-gap)) {
		action, gap = 1, -gap
	}
	return action, float32(-math.Log1p(math.Exp(gap)))
}

// estimate computes returns and standardized advantages by GAE (Schulman et al. 2016).
func (r *rollout) estimate(values []float32, fallen []bool) {
	const discount, lambda = 0.99, 0.95
	r.Returns, r.Advantages = make([]float32, len(fallen)), make([]float32, len(fallen))
	var sum, squares float64
	for i := len(fallen) - 1; i >= 0; i-- {
		advantage := 1 - values[i]
		if !fallen[i] {
			advantage += discount * values[i+parallel]
		}
		if !fallen[i] && i+parallel < len(fallen) {
			advantage += discount * lambda * r.Advantages[i+parallel]
		}
		r.Advantages[i], r.Returns[i] = advantage, advantage+values[i]
		sum, squares = sum+float64(advantage), squares+float64(advantage)*float64(advantage)
	}
	mean := sum / float64(len(fallen))
	deviation := math.Sqrt(squares/float64(len(fallen)) - mean*mean)
	for i, a := range r.Advantages {
		r.Advantages[i] = float32((float64(a) - mean) / (deviation + 1e-6))
	}
}
