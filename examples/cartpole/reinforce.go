package main

import (
	"iter"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/xla/ops"
)

// reinforce is a step of REINFORCE (Williams 1992) with the mean return as baseline. Its program also plays the
// episodes, with the state's random numbers, without data.
func reinforce(b *managed.Builder) {
	const episodes, discount = 16, 0.99
	uniform := b.Scope().RandomUniform(b.Graph(), shapes.Make(b.DType(), episodes, 4))
	first := graph.MulScalar(graph.AddScalar(uniform, -0.5), 2*tilt)
	states, actions, rewards := play(first, func(states *graph.Node) *graph.Node { return sample(b, policy(b, states)) })

	end := []*graph.Node{graph.ZerosLike(graph.ReduceSum(rewards, 0))}
	_, sums := ops.Scan(end, []*graph.Node{rewards}, func(later, reward []*graph.Node) (next, out []*graph.Node) {
		sum := []*graph.Node{graph.Add(reward[0], graph.MulScalar(later[0], discount))}
		return sum, sum
	}, ops.Reverse())
	advantages := graph.Sub(sums[0], losses.MaskedMean(sums[0], rewards))
	deviation := graph.Sqrt(losses.MaskedMean(graph.Square(advantages), rewards))

	likelihoods := at(graph.LogSoftmax(policy(b, states)), actions)
	b.Loss("loss", graph.Neg(losses.MaskedMean(graph.Mul(likelihoods, graph.Div(advantages, deviation)), rewards)))
	b.Metric("return", graph.ReduceSum(rewards, 0))
}

// sample draws an action by the Gumbel-max trick.
func sample(b *managed.Builder, logits *graph.Node) *graph.Node {
	uniform := b.Scope().RandomUniform(b.Graph(), logits.Shape())
	return graph.ArgMax(graph.Sub(logits, graph.Log(graph.Neg(graph.Log(uniform)))), -1)
}

type empty struct{}

func nothing(agent) loop.Source[data.Batch] { return &empty{} }

func (*empty) From(int64) iter.Seq2[data.Batch, error] {
	return func(yield func(data.Batch, error) bool) {
		for yield(data.Batch{}, nil) {
		}
	}
}
