package text

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSampling_asThePeer(t *testing.T) {
	var cases []struct {
		Logits        []*float32
		Repetition    float64
		Text          []int32
		Temperature   float64
		TopK          int     `json:"top_k"`
		TopP          float64 `json:"top_p"`
		MinP          float64 `json:"min_p"`
		Probabilities []float64
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "sampling.json")), &cases))
	require.Greater(t, len(cases), 10)
	for _, c := range cases {
		s := Sampling{Temperature: c.Temperature, TopK: c.TopK, TopP: c.TopP, MinP: c.MinP, Repetition: c.Repetition}
		logits := make([]float32, len(c.Logits))
		for i, v := range c.Logits {
			if logits[i] = float32(math.Inf(-1)); v != nil {
				logits[i] = *v
			}
		}
		p, err := s.Probabilities(logits, c.Text...)
		require.NoError(t, err)
		require.InDeltaSlice(t, c.Probabilities, p, 1e-9, "%+v", s)
		for i, v := range p {
			require.Equal(t, c.Probabilities[i] == 0, v == 0, "%+v: token %d", s, i)
		}
	}
}

// Draws have the computed probabilities, and equal random numbers give equal draws.
func TestSampling_draws(t *testing.T) {
	logits := []float32{1, float32(math.Inf(-1)), 2, 0.5, 2.5}
	s := Sampling{Temperature: 0.9, TopK: 3}
	p, err := s.Probabilities(logits)
	require.NoError(t, err)
	const n = 20_000
	random, again, counts := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(1, 1)), make([]float64, len(logits))
	for range n {
		id, err := s.Draw(random, logits)
		require.NoError(t, err)
		same, err := s.Draw(again, logits)
		require.NoError(t, err)
		require.Equal(t, id, same)
		counts[id]++
	}
	for i := range counts {
		require.InDelta(t, p[i], counts[i]/n, 4*math.Sqrt(p[i]*(1-p[i])/n), "token %d", i)
	}
	_, err = Sampling{Temperature: 1}.Draw(nil, []float32{1})
	require.EqualError(t, err, "text: no random numbers to draw by, expected some at the Temperature 1")
	id, err := Sampling{}.Draw(nil, []float32{-3, 7, 7})
	require.NoError(t, err)
	require.Equal(t, int32(1), id)
}

// A large vocabulary keeps as many tokens as a small one, by whichever way the greatest are found.
func TestSampling_topKOfMany(t *testing.T) {
	random, logits := rand.New(rand.NewPCG(1, 1)), make([]float32, 5000)
	for i := range logits {
		logits[i] = float32(random.NormFloat64())
	}
	for _, k := range []int{1, 2, 999, 1000, 1001, 4999} {
		p, err := Sampling{Temperature: 1, TopK: k}.Probabilities(logits)
		require.NoError(t, err)
		kept, least, most := 0, math.Inf(1), math.Inf(-1)
		for i, v := range p {
			if v > 0 {
				kept, least = kept+1, math.Min(least, float64(logits[i]))
			} else {
				most = math.Max(most, float64(logits[i]))
			}
		}
		require.Equal(t, k, kept)
		require.Less(t, most, least)
	}
}

func TestSampling_errors(t *testing.T) {
	nan64, nan, inf := math.NaN(), float32(math.NaN()), float32(math.Inf(1))
	for _, row := range []struct {
		s       Sampling
		logits  []float32
		message string
	}{
		{Sampling{Temperature: -1}, []float32{1}, "text: {Repetition:0 Temperature:-1 TopK:0 TopP:0 MinP:0}, expected a Temperature and a TopK of at least 0, and a TopP and a MinP from 0 to 1"},
		{Sampling{TopP: 1.5}, []float32{1}, "TopP:1.5 MinP:0}, expected"},
		{Sampling{MinP: nan64}, []float32{1}, "MinP:NaN}, expected"},
		{Sampling{Repetition: -2}, []float32{1}, "text: Repetition is -2, expected a number above 0, or 0 for none"},
		{Sampling{TopK: -1}, []float32{1}, "TopK:-1"},
		{Sampling{}, []float32{1, nan}, "text: the logit of token 1 is NaN, expected finite numbers, or -Inf for a token that is never drawn"},
		{Sampling{Temperature: 1}, []float32{inf}, "the logit of token 0 is +Inf"},
		{Sampling{}, nil, "text: none of 0 logits is above -Inf"},
		{Sampling{Temperature: 1}, []float32{-inf, -inf}, "text: none of 2 logits is above -Inf"},
	} {
		_, err := row.s.Draw(rand.New(rand.NewPCG(1, 1)), row.logits)
		require.ErrorContains(t, err, row.message)
	}
	_, err := Sampling{Repetition: 2}.Draw(nil, []float32{1, 2}, 1, 2)
	require.EqualError(t, err, "text: token 1 of the text is 2, expected 0 to 1, a token with a logit")
}
