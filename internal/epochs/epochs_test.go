package epochs_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/epochs"
)

// placed is a batch of an epoch that knows whether it is the last if known is set.
type placed struct {
	number, epoch int64
	last, known   bool
}

func (p placed) InEpoch() (epoch int64, last, known bool) { return p.epoch, p.last, p.known }

// numbers yields the numbers from first to before end.
func numbers(first, end int64) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		for i := first; i < end && yield(i, nil); i++ {
		}
	}
}

type source[B any] func(position int64) iter.Seq2[B, error]

func (s source[B]) From(position int64) iter.Seq2[B, error] { return s(position) }

// read has the batches that a range yields, those that end an epoch, and its error.
type read[B any] struct {
	all, ends []B
	err       error
}

func all[B any](r epochs.Range[B], most int) (found read[B]) {
	r.Newest = new(B)
	r.All(func(last bool, err error) bool {
		if found.err = err; err != nil {
			return false
		}
		found.all = append(found.all, *r.Newest)
		if last {
			found.ends = append(found.ends, *r.Newest)
		}
		return len(found.all) < most
	})
	return found
}

func TestAll(t *testing.T) {
	for name, c := range map[string]struct {
		of        epochs.Range[int64]
		all, ends []int64
		err       string
	}{
		"a plain iterator":     {of: epochs.Range[int64]{Plain: numbers(0, 3), Ahead: true, Once: true}, all: []int64{0, 1, 2}, ends: []int64{2}},
		"its ends uncounted":   {of: epochs.Range[int64]{Plain: numbers(0, 3), Once: true}, all: []int64{0, 1, 2}},
		"again and again":      {of: epochs.Range[int64]{Plain: numbers(0, 2), Ahead: true, Until: 9}, all: []int64{0, 1, 0, 1, 0}, ends: []int64{1, 1}},
		"from a position":      {of: epochs.Range[int64]{Plain: numbers(0, 3), Ahead: true, Until: 9, Position: 4}, all: []int64{1, 2, 0, 1, 2}, ends: []int64{2, 2}},
		"beyond its end":       {of: epochs.Range[int64]{Plain: numbers(0, 3), Position: 4}, err: "the data ended after 3 batches, but the run continues after batch 4: give it the same data as the earlier run"},
		"nothing, again":       {of: epochs.Range[int64]{Plain: numbers(0, 0), Ahead: true, Until: 9}},
		"a source":             {of: epochs.Range[int64]{Source: source[int64](func(at int64) iter.Seq2[int64, error] { return numbers(at, 4) }), Position: 2}, all: []int64{2, 3}},
		"of no iterator":       {of: epochs.Range[int64]{Source: source[int64](func(int64) iter.Seq2[int64, error] { return nil }), Position: 2}, err: "the source returned no iterator for position 2"},
		"over after its epoch": {of: epochs.Range[int64]{Source: source[int64](func(at int64) iter.Seq2[int64, error] { return numbers(at, at+2) }), Until: 9}, all: []int64{0, 1, 2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			found := all(c.of, 5)
			require.Equal(t, c.all, found.all)
			require.Equal(t, c.ends, found.ends)
			if c.err != "" {
				require.EqualError(t, found.err, c.err)
			}
		})
	}
}

// A batch that does not know whether it ends its epoch waits for the next one; one that knows does not.
func TestAll_takesABatchAhead(t *testing.T) {
	for _, known := range []bool{true, false} {
		made, early := int64(0), &epochs.Early{}
		of := epochs.Range[placed]{Ahead: true, Early: early, Newest: new(placed), Source: source[placed](func(at int64) iter.Seq2[placed, error] {
			return func(yield func(placed, error) bool) {
				for made = at; yield(placed{made, made / 3, known && made%3 == 2, known}, nil); made++ {
				}
			}
		})}
		n, ends := int64(0), []int64(nil)
		of.All(func(last bool, err error) bool {
			require.NoError(t, err)
			require.Equal(t, n, of.Newest.number)
			require.Equal(t, !known, early.Taken)
			require.Equal(t, !known, made > n, "the source was asked for the next one")
			if last {
				ends = append(ends, n)
			}
			n++
			return n < 7
		})
		require.Equal(t, []int64{2, 5}, ends)
	}
}

// Without an Until, a range ends with the epoch of its source.
// Epochs of a mixture go back: its ends are those of no epoch.
func TestAll_refusesEpochsThatGoBack(t *testing.T) {
	mixed := source[placed](func(int64) iter.Seq2[placed, error] {
		return func(yield func(placed, error) bool) {
			for i := int64(0); yield(placed{number: i, epoch: i % 2 * (i / 4)}, nil); i++ {
			}
		}
	})
	for _, counts := range []bool{true, false} {
		n, failure := 0, error(nil)
		epochs.Range[placed]{Ahead: counts, Newest: new(placed), Source: mixed}.All(func(_ bool, err error) bool {
			n, failure = n+1, err
			return err == nil && n < 20
		})
		if !counts {
			require.NoError(t, failure)
			continue
		}
		require.EqualError(t, failure, "a batch of epoch 0 comes after one of epoch 1, so the data has no common epochs, as a mixture of sets has none: count in steps, "+
			"or give the sets as loop.Data, whose end is that of an epoch")
	}
}

func TestAll_once(t *testing.T) {
	of := epochs.Range[placed]{Once: true, Source: source[placed](func(at int64) iter.Seq2[placed, error] {
		return func(yield func(placed, error) bool) {
			for i := at; yield(placed{number: i, epoch: i / 3}, nil); i++ {
			}
		}
	})}
	require.Len(t, all(of, 99).all, 3)
	of.Epochs = 1
	require.Empty(t, all(of, 99).all)
}

func TestAfter(t *testing.T) {
	var got []int64
	for n, err := range epochs.After(numbers(0, 5), 3) {
		require.NoError(t, err)
		got = append(got, n)
	}
	require.Equal(t, []int64{3, 4}, got)
	broken := errors.New("broken")
	for _, c := range []struct {
		of  iter.Seq2[int64, error]
		err string
	}{
		{numbers(0, 2), "the data ended after 2 batches, but the run continues after batch 3: give it the same data as the earlier run"},
		{func(yield func(int64, error) bool) { yield(0, broken) }, "broken"},
	} {
		for _, err := range epochs.After(c.of, 3) {
			require.EqualError(t, err, c.err)
			break
		}
	}
}
