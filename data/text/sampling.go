package text

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Sampling configures the choice of a token from logits. The zero value chooses the likeliest.
type Sampling struct {
	// Temperature divides the logits: lower values favour likely tokens. 0 chooses the greatest logit, the first of
	// several, and ignores the other settings.
	Temperature float64
	// TopK keeps the tokens with the greatest logits, with ties; 0 keeps all.
	TopK int
	// TopP then keeps the fewest likeliest tokens whose probabilities sum to TopP (Holtzman et al. 2020); 0 or 1 keeps
	// all.
	TopP float64
}

// Probabilities returns the probability of each token. A logit of -Inf gets 0; other non-finite logits are errors.
func (s Sampling) Probabilities(logits []float32) ([]float64, error) {
	if !(s.Temperature >= 0) || math.IsInf(s.Temperature, 1) || s.TopK < 0 || !(s.TopP >= 0 && s.TopP <= 1) {
		return nil, fmt.Errorf("text: %+v, expected a Temperature and a TopK of at least 0, and a TopP from 0 to 1", s)
	}
	best := 0
	for i, v := range logits {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 1) {
			return nil, fmt.Errorf("text: the logit of token %d is %v, expected finite numbers, or -Inf for a token that is never drawn", i, v)
		}
		if v > logits[best] {
			best = i
		}
	}
	if len(logits) == 0 || math.IsInf(float64(logits[best]), -1) {
		return nil, fmt.Errorf("text: none of %d logits is above -Inf", len(logits))
	}
	p := make([]float64, len(logits))
	if s.Temperature == 0 {
		p[best] = 1
		return p, nil
	}
	for i, v := range logits {
		p[i] = math.Exp((float64(v) - float64(logits[best])) / s.Temperature)
	}
	if s.TopK > 0 && s.TopK < len(p) || s.TopP > 0 && s.TopP < 1 {
		s.cut(p, logits)
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

func (s Sampling) cut(p []float64, logits []float32) {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(logits[j], logits[i]) })
	kept := len(order)
	if s.TopK > 0 {
		kept = min(kept, s.TopK)
		for kept < len(order) && logits[order[kept]] == logits[order[kept-1]] {
			kept++
		}
	}
	if s.TopP > 0 {
		all, sum := 0.0, 0.0
		for _, i := range order[:kept] {
			all += p[i]
		}
		for n, i := range order[:kept] {
			if sum += p[i]; sum >= s.TopP*all {
				kept = n + 1
				break
			}
		}
	}
	for _, i := range order[kept:] {
		p[i] = 0
	}
}

// Draw returns the id of a random token, by random and logits. With Temperature 0, random may be nil.
func (s Sampling) Draw(random *rand.Rand, logits []float32) (int32, error) {
	p, err := s.Probabilities(logits)
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
