package optim

import (
	"fmt"
	"math"
	"slices"
)

// SuggestRate suggests a learning rate from a sweep over rates (Smith 2017): where the smoothed loss falls fastest
// over the logarithm of the rate, as "steep" in fastai and Lightning.
//
// To sweep, train n steps at rate 1 with a [ScaleBySchedule] of ExponentialDecay(first, last/first, n-1), then
// restore a snapshot. The rates are the values of [Schedule.At] and must rise. Losses from the first non-finite or
// diverged one, and a fall after the minimum, are ignored. At least 10 losses must remain.
func SuggestRate(rates, losses []float64) (float64, error) {
	rate, err := suggestRate(rates, losses)
	if err != nil {
		return 0, fmt.Errorf("optim: suggest a learning rate: %w", err)
	}
	return rate, nil
}

func suggestRate(rates, losses []float64) (float64, error) {
	const least, astray = 10, 4
	if len(rates) != len(losses) {
		return 0, fmt.Errorf("%d rates and %d losses, expected the same number of both", len(rates), len(losses))
	}
	for i, r := range rates {
		if !(r > 0) || math.IsInf(r, 0) || i > 0 && r <= rates[i-1] {
			return 0, fmt.Errorf("rate %d is %g, expected positive, increasing rates", i, r)
		}
	}
	for i, l := range losses {
		if math.IsNaN(l) || math.IsInf(l, 0) {
			losses = losses[:i]
			break
		}
	}
	smooth := smoothed(losses, len(rates)/20)
	lowest := math.Inf(1)
	for i, s := range smooth {
		if s-lowest > astray*max(math.Abs(lowest), math.Abs(smooth[0]-lowest)) {
			smooth = smooth[:i]
			break
		}
		lowest = min(lowest, s)
	}
	if len(smooth) < least {
		return 0, fmt.Errorf("%d of %d losses are usable, expected %d or more: sweep with smaller steps, or from a lower rate", len(smooth), len(rates), least)
	}
	// A fall after the minimum is a recovery from divergence.
	end := slices.Index(smooth, slices.Min(smooth))
	best, steepest := 0, 0.0
	for i := 1; i < min(len(smooth)-1, end+1); i++ {
		slope := (smooth[i+1] - smooth[i-1]) / math.Log(rates[i+1]/rates[i-1])
		if slope < steepest {
			best, steepest = i, slope
		}
	}
	if steepest == 0 {
		return 0, fmt.Errorf("the losses never fall between the rates %g and %g: sweep lower ones", rates[0], rates[len(smooth)-1])
	}
	return rates[best], nil
}

// smoothed is centered: a trailing average, as in fastai, suggests too high rates.
func smoothed(values []float64, around int) []float64 {
	means := make([]float64, len(values))
	for i := range values {
		n := min(around, i, len(values)-1-i)
		for _, v := range values[i-n : i+n+1] {
			means[i] += v / float64(2*n+1)
		}
	}
	return means
}
