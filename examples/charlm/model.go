package main

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/nn"
)

const (
	width       = 64
	temperature = 0.7
)

// network is a transformer from [batch, window] to each position's logits.
func network(characters int) nn.Layer {
	block := nn.Sequential{
		nn.Residual{nn.LayerNorm{}, nn.Attention{Heads: 4, Width: width / 4, Causal: true}},
		nn.Residual{nn.LayerNorm{}, nn.Dense{Units: 4 * width}, nn.Activation("gelu"), nn.Dense{Units: width}}}
	return nn.Sequential{
		nn.Embedding{Vocabulary: characters, Width: width}, nn.Positions{Length: window}, block, block, nn.LayerNorm{}, nn.Dense{Units: characters}}
}

func write(ctx context.Context, model *flaxlike.Model, alphabet []rune, seen []int32, length int) string {
	random := rand.New(rand.NewPCG(0, 0))
	seen = append([]int32(nil), seen...)
	for range length {
		last := seen[len(seen)-window:]
		next := must.M1(model.PredictOne(ctx, data.X(last, window)))
		logits := must.M1(next.Output()).Flat.([]float32)
		seen = append(seen, int32(draw(random, logits[len(logits)-len(alphabet):])))
	}
	written := make([]rune, length)
	for i, c := range seen[len(seen)-length:] {
		written[i] = alphabet[c]
	}
	return string(written)
}

// The Gumbel-max trick. A temperature below 1 favours likely characters.
func draw(random *rand.Rand, logits []float32) (best int) {
	most := math.Inf(-1)
	for i, v := range logits {
		if noisy := float64(v)/temperature - math.Log(random.ExpFloat64()); noisy > most {
			best, most = i, noisy
		}
	}
	return best
}
