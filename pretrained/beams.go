package pretrained

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lazo-ml/lazo/data"
)

// Beams searches for the likeliest text, as num_beams of transformers.
type Beams struct {
	// Count is the number of continued texts; 0 or 1: no search.
	Count int
	// LengthPenalty divides the logarithm of a text's probability by its number of tokens to this power: 1 is the mean,
	// transformers' standard, 0 the sum.
	LengthPenalty float64
	// Early ends the search. "": when the best continued text, with its length's penalty, is not better than Count
	// ended texts. "never": likewise with the penalty of Most tokens, if LengthPenalty is above 0. "first": when
	// Count texts have ended. They are early_stopping's False, "never" and True.
	Early string
}

func (b Beams) check() error {
	if b.Count < 0 || b.Count > mostRows || math.IsNaN(b.LengthPenalty) || math.IsInf(b.LengthPenalty, 0) || !slices.Contains([]string{"", "never", "first"}, b.Early) {
		return fmt.Errorf("%+v, expected a Count from 0 to %d, a finite LengthPenalty, and Early \"\", \"never\" or \"first\"", b, mostRows)
	}
	return nil
}

type beam struct {
	ids   []int32
	score float64 // the logarithm of its probability, if ended with the penalty
	from  int     // the continued beam
}

type beamSearch struct {
	Beams
	of       Generation
	prompt   []int32
	most     int
	running  []beam // Count, the best first
	ended    []beam
	improves bool // a running beam may become better than all ended ones
	done     bool
}

const never = -1e9 // a score

func newSearch(c *continued, of Generation) *beamSearch {
	s := &beamSearch{Beams: of.Beams, of: of, prompt: c.ids, most: c.most, running: make([]beam, of.Beams.Count), improves: true}
	for i := range s.running {
		s.running[i].score = never // the others are equal to it
	}
	s.running[0].score = 0
	return s
}

func (s *beamSearch) step(logits func(beam int) []float32) error {
	candidates, err := s.candidates(logits)
	if err != nil {
		return err
	}
	length := len(s.running[0].ids) + 1
	last, full := length == s.most, len(s.ended) == s.Count && s.Early == "first"
	stops := func(c beam) bool { return last || slices.Contains(s.of.Stop, c.ids[length-1]) }
	var next []beam
	for i, c := range candidates {
		if !stops(c) {
			if len(next) < s.Count {
				next = append(next, c)
			}
		} else if i < s.Count && !full && s.improves {
			c.score /= math.Pow(float64(length), s.LengthPenalty)
			s.ended = append(s.ended, c)
		}
	}
	slices.SortStableFunc(s.ended, better)
	s.ended = s.ended[:min(len(s.ended), s.Count)]
	if len(next) < s.Count { // the end of all
		s.done = true
		return nil
	}
	s.running = next
	if s.Early == "never" && s.LengthPenalty > 0 {
		length = s.most
	}
	reachable := next[0].score / math.Pow(float64(length), s.LengthPenalty)
	s.improves = s.improves && (len(s.ended) < s.Count || reachable > s.ended[s.Count-1].score)
	s.done = !s.improves || s.Early == "first" && len(s.ended) == s.Count
	return nil
}

func better(a, b beam) int {
	switch {
	case a.score > b.score:
		return -1
	case a.score < b.score:
		return 1
	}
	return 0
}

// candidates are the best beams of one more token. At least Count of them do not end by a token of stop.
func (s *beamSearch) candidates(logits func(beam int) []float32) ([]beam, error) {
	type candidate struct {
		score float64
		from  int
		id    int32
	}
	count := s.Count * max(2, 1+len(s.of.Stop))
	best := make([]candidate, 0, count+1)
	for i, b := range s.running {
		all := logits(i)
		most, sum := math.Inf(-1), 0.0
		for _, v := range all {
			most = math.Max(most, float64(v)) // NaN stays
		}
		for _, v := range all {
			sum += math.Exp(float64(v) - most)
		}
		if math.IsInf(most, 0) || math.IsNaN(sum) {
			return nil, errors.New("the logits are not finite numbers")
		}
		scores, total := make([]float64, len(all)), most+math.Log(sum)
		for id, v := range all {
			scores[id] = float64(v) - total
		}
		if err := s.of.Sampling.Penalize(scores, slices.Concat(s.prompt, b.ids)...); err != nil {
			return nil, err
		}
		for id, v := range scores {
			c := candidate{b.score + v, i, int32(id)}
			if len(best) == count && c.score <= best[count-1].score {
				continue
			}
			at, _ := slices.BinarySearchFunc(best, c, func(a, b candidate) int { // after its equals
				if a.score >= b.score {
					return -1
				}
				return 1
			})
			best = slices.Insert(best, at, c)
			best = best[:min(len(best), count)]
		}
	}
	beams := make([]beam, len(best))
	for i, c := range best {
		beams[i] = beam{append(slices.Clone(s.running[c.from].ids), c.id), c.score, c.from}
	}
	return beams, nil
}

func (g *Generator) search(ctx context.Context, texts []*continued, of Generation, yield func(Piece, error) bool) error {
	n := of.Beams.Count
	searches := make([]*beamSearch, len(texts))
	for i, c := range texts {
		searches[i] = newSearch(c, of)
	}
	logits, err := g.begin(ctx, texts, n)
	for first, open := true, true; open; first = false {
		if err != nil {
			return err
		}
		open = false
		ids, positions, sources := make([]int32, g.rows), make([]int32, g.rows), make([]int32, g.rows)
		for i, s := range searches {
			if s.done {
				continue
			}
			if err := s.step(func(beam int) []float32 {
				if first {
					beam = 0
				}
				return row(logits, i*n+beam)
			}); err != nil {
				return fmt.Errorf("prompt %d: %w", i, err)
			}
			open = open || !s.done
			for k, b := range s.running {
				at, from := i*n+k, b.from
				if first {
					from = 0
				}
				if !s.done {
					ids[at], positions[at], sources[at] = b.ids[len(b.ids)-1], int32(texts[i].prompt+len(b.ids)-1), int32(i*n+from)
				}
			}
		}
		if open {
			logits, err = g.logits(ctx, g.beams, ids, data.Named(positionInput, positions, g.rows), data.Named(sourceInput, sources, g.rows))
		}
	}
	for i, s := range searches {
		for _, id := range s.ended[0].ids {
			p, err := texts[i].add(id)
			if err != nil {
				return fmt.Errorf("prompt %d: %w", i, err)
			}
			if !yield(p, nil) {
				return nil
			}
		}
	}
	return nil
}
