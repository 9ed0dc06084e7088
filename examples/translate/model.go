package main

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/xla/ops"
)

const (
	width = 64
	heads = 4
	end   = 0 // ends a sentence; the decoder begins with it
)

type network struct{ sources, targets, layers int }

func (m network) learn(b *managed.Builder) {
	target := b.Field("target") // the words, their end, then -100 as padding
	counts := graph.GreaterOrEqual(target, graph.ScalarZero(target.Graph(), target.DType()))
	before := graph.ShiftWithScalar(graph.Where(counts, target, graph.ZerosLike(target)), -1, graph.ShiftDirRight, 1, end)
	logits, _ := m.decode(b.Scope().In("decoder"), before, m.encode(b), b.Field("lengths"), nil)
	b.Loss("loss", losses.MaskedMean(losses.CrossEntropy(target, logits), counts))
}

// A greedy test step. XLA computes the memory's loop-invariant keys and values once.
func (m network) translate(b *managed.Builder) {
	target, memory, lengths := b.Field("target"), m.encode(b), b.Field("lengths")
	batch, places := target.Shape().Dimensions[0], target.Shape().Dimensions[1]
	word := graph.Zeros(b.Graph(), shapes.Make(dtypes.Int32, batch, 1))
	carry := []*graph.Node{word}
	for range m.layers {
		cache := selfAttention.NewCache(b.Scope(), memory, places)
		carry = append(carry, cache.Key, cache.Value, cache.Position)
	}
	_, chosen := ops.Scan(carry, nil, func(carry, _ []*graph.Node) (next, out []*graph.Node) {
		var caches []nn.Cache
		for i := 1; i < len(carry); i += 3 {
			caches = append(caches, nn.Cache{Key: carry[i], Value: carry[i+1], Position: carry[i+2]})
		}
		logits, caches := m.decode(b.Scope().At("decoder"), carry[0], memory, lengths, caches)
		word := graph.ArgMax(logits, -1, dtypes.Int32)
		next = []*graph.Node{word}
		for _, c := range caches {
			next = append(next, c.Key, c.Value, c.Position)
		}
		return next, []*graph.Node{graph.Squeeze(word, 1)}
	}, ops.Length(places), ops.Axis(1))

	zero := graph.ScalarZero(target.Graph(), target.DType())
	right := graph.LogicalOr(graph.Equal(chosen[0], target), graph.LessThan(target, zero))
	b.Mean("exact_match", graph.ReduceMin(graph.ConvertDType(right, dtypes.Float32), 1))
	b.Output("words", chosen[0])
}

var selfAttention = nn.Attention{Heads: heads, Causal: true}

// encode returns the decoder's memory: [batch, places] to [batch, places, width].
func (m network) encode(b *managed.Builder) *graph.Node {
	s, lengths := b.Scope().In("encoder"), b.Field("lengths")
	x := embedded(s, b.Field("source"), m.sources, nil)
	for i := range m.layers {
		at := s.In("block_%d", i)
		attention := nn.Attention{Heads: heads, Mask: lengths}
		x = graph.Add(x, attention.Apply(at.In("attention"), nn.LayerNorm{}.Apply(at.In("attention_norm"), x)))
		x = thought(at, x)
	}
	return nn.LayerNorm{}.Apply(s.In("norm"), x)
}

// decode returns logits for the word after each of [batch, places], which follow the words of caches, if any.
func (m network) decode(
	s *model.Scope, words, memory, lengths *graph.Node, caches []nn.Cache,
) (*graph.Node, []nn.Cache) {
	var start *graph.Node
	if caches != nil {
		start = caches[0].Position
	}
	x := embedded(s, words, m.targets, start)
	for i := range m.layers {
		at := s.In("block_%d", i)
		h := nn.LayerNorm{}.Apply(at.In("attention_norm"), x)
		if caches == nil {
			h = selfAttention.Apply(at.In("attention"), h)
		} else {
			h, caches[i] = selfAttention.Decode(at.In("attention"), h, caches[i])
		}
		x = graph.Add(x, h)
		cross := nn.Attention{Heads: heads, Mask: lengths}
		x = graph.Add(x, cross.Cross(at.In("cross"), nn.LayerNorm{}.Apply(at.In("cross_norm"), x), memory))
		x = thought(at, x)
	}
	return nn.Dense{Units: m.targets}.Apply(s.In("logits"), nn.LayerNorm{}.Apply(s.In("norm"), x)), caches
}

func embedded(s *model.Scope, words *graph.Node, vocabulary int, start *graph.Node) *graph.Node {
	e := nn.Embedding{Vocabulary: vocabulary, Width: width, Initial: nn.RandomNormal(1)}
	return nn.Sinusoidal{Start: start}.Apply(s, e.Apply(s.In("words"), words))
}

func thought(s *model.Scope, x *graph.Node) *graph.Node {
	h := nn.LayerNorm{}.Apply(s.In("dense_norm"), x)
	h = nn.Relu(nn.Dense{Units: 4 * width}.Apply(s.In("dense_0"), h))
	return graph.Add(x, nn.Dense{Units: width}.Apply(s.In("dense_1"), h))
}
