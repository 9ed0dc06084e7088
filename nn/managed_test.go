package nn_test

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
)

// tagger is a step with a layer of each kind.
func tagger(b *managed.Builder) {
	s, ids, n, y := b.Scope(), b.Field("x"), b.Field("n"), b.Field("y")
	tokens := nn.Embedding{Vocabulary: 11, Width: 8, Padding: new(0)}
	x := tokens.Apply(s.In("tokens"), ids)
	x = nn.Positions{Length: 3}.Apply(s.In("positions"), x)
	x = nn.Conv{Channels: 8, Window: []int{3}}.Apply(s.In("conv"), x)
	x = nn.LayerNorm{}.Apply(s.In("norm"), x)
	x = graph.Add(x, nn.Attention{Heads: 4, KeyHeads: 2, Mask: n, Rotary: 1e4}.Apply(s.In("attention"), x))
	x = nn.RMSNorm{}.Apply(s.In("rms"), x)
	x = nn.LSTM{Units: 8, Mask: n}.Apply(s.In("lstm"), x)
	x = nn.GRU{Units: 8, Mask: n}.Apply(s.In("gru"), nn.GroupNorm{Groups: 2}.Apply(s.In("group"), x))
	logits := tokens.Logits(s.Shared("tokens"), x)
	counts := nn.MaskOf(nn.Masked(ids, n))
	b.Loss("loss", losses.MaskedMean(losses.CrossEntropy(y, b.ToOutputType(logits)), counts))
}
