package text

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Sampling chooses a token from logits. The zero value chooses the likeliest.
type Sampling struct {
	// Repetition divides positive logits of the text's tokens, and multiplies negative ones, before all else (Keskar
	// et al. 2019); 0 or 1 changes none.
	Repetition float64
	// Temperature divides the logits: lower values favour likely tokens. 0 chooses the greatest logit and ignores the
	// settings below.
	Temperature float64
	// TopK keeps the tokens with the greatest logits, with ties; 0 keeps all.
	TopK int
	// TopP then keeps the fewest likeliest tokens whose probabilities sum to TopP (Holtzman et al. 2020); 0 or 1 keeps
	// all.
	TopP float64
	// MinP then keeps the tokens whose probability is at least MinP times the greatest one; 0 keeps all.
	MinP float64
}

// Probabilities returns each token's probability after a text. A logit of -Inf gets 0; other non-finite logits are
// errors.
func (s Sampling) Probabilities(logits []float32, text ...int32) ([]float64, error) {
	share := func(x float64) bool { return x >= 0 && x <= 1 }
	if !(s.Temperature >= 0) || math.IsInf(s.Temperature, 1) || s.TopK < 0 || !share(s.TopP) || !share(s.MinP) {
		return nil, fmt.Errorf("text: %+v, expected a Temperature and a TopK of at least 0, and a TopP and a MinP from 0 to 1", s)
	}
	scores, best := make([]float64, len(logits)), 0
	for i, v := range logits {
		if scores[i] = float64(v); math.IsNaN(scores[i]) || math.IsInf(scores[i], 1) {
			return nil, fmt.Errorf("text: the logit of token %d is %v, expected finite numbers, or -Inf for a token that is never drawn", i, v)
		}
	}
	if err := s.Penalize(scores, text...); err != nil {
		return nil, err
	}
	for i, v := range scores {
		if v > scores[best] {
			best = i
		}
	}
	if len(scores) == 0 || math.IsInf(scores[best], -1) {
		return nil, fmt.Errorf("text: none of %d logits is above -Inf", len(scores))
	}
	p := make([]float64, len(scores))
	if s.Temperature == 0 {
		p[best] = 1
		return p, nil
	}
	for i, v := range scores {
		p[i] = math.Exp((v - scores[best]) / s.Temperature)
	}
	if s.TopK > 0 && s.TopK < len(p) || s.TopP > 0 && s.TopP < 1 {
		s.cut(p, scores)
	}
	for i, v := range p {
		if v < s.MinP { // the greatest is 1 here
			p[i] = 0
		}
	}
	sum := 0.0
	for _, v := range p {
		sum += v
	}
	for i := range p {
		p[i] /= sum
	}
	return p, nil
}

// Penalize changes logits by Repetition, once for each token of the text.
func (s Sampling) Penalize(logits []float64, text ...int32) error {
	if !(s.Repetition >= 0) || math.IsInf(s.Repetition, 1) {
		return fmt.Errorf("text: Repetition is %v, expected a number above 0, or 0 for none", s.Repetition)
	}
	if s.Repetition == 0 || s.Repetition == 1 {
		return nil
	}
	for i, id := range text {
		if id < 0 || int(id) >= len(logits) {
			return fmt.Errorf("text: token %d of the text is %d, expected 0 to %d, a token with a logit", i, id, len(logits)-1)
		}
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(text))) {
		if logits[id] < 0 {
			logits[id] *= s.Repetition
		} else {
			logits[id] /= s.Repetition
		}
	}
	return nil
}

func (s Sampling) cut(p, scores []float64) {
	if s.TopK > 0 && s.TopK < len(p) {
		least := greatest(scores, s.TopK)
		for i, v := range scores {
			if v < least {
				p[i] = 0
			}
		}
	}
	if s.TopP == 0 || s.TopP == 1 {
		return
	}
	var order []int
	all, sum := 0.0, 0.0
	for i, v := range p {
		if v > 0 {
			order, all = append(order, i), all+v
		}
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Or(cmp.Compare(scores[j], scores[i]), cmp.Compare(i, j)) })
	for n, i := range order {
		if sum += p[i]; sum >= s.TopP*all {
			for _, i := range order[n+1:] {
				p[i] = 0
			}
			return
		}
	}
}

func greatest(x []float64, k int) float64 {
	var best []float64 // the least one first
	if k > 1000 {
		best = slices.Sorted(slices.Values(x))
		return best[len(best)-k]
	}
	for _, v := range x {
		if len(best) == k {
			if v <= best[0] {
				continue
			}
			best = slices.Delete(best, 0, 1)
		}
		at, _ := slices.BinarySearch(best, v)
		best = slices.Insert(best, at, v)
	}
	return best[0]
}

// Draw returns a token's id, random by its probability. With Temperature 0, random may be nil.
func (s Sampling) Draw(random *rand.Rand, logits []float32, text ...int32) (int32, error) {
	p, err := s.Probabilities(logits, text...)
	if err != nil {
		return 0, err
	}
	at, last := 0.0, 0
	if s.Temperature > 0 {
		if random == nil {
			return 0, fmt.Errorf("text: no random numbers to draw by, expected some at the Temperature %v", s.Temperature)
		}
		at = random.Float64()
	}
	for i, v := range p {
		if v > 0 {
			last = i // against rounding
			if at -= v; at < 0 {
				break
			}
		}
	}
	return int32(last), nil
}
