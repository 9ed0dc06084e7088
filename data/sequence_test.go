package data_test

import (
	"errors"
	"fmt"
	"iter"
	"log"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/data"
)

var errBroken = errors.New("broken")

// got has the results of one iteration; a batch below zero means an error.
type got []int

func list(t require.TestingT, s iter.Seq2[int, error], most int) got {
	var all got
	for b, err := range s {
		if err != nil {
			require.ErrorIs(t, err, errBroken)
			b = -1
		}
		all = append(all, b)
		if len(all) == most {
			break
		}
	}
	return all
}

// source counts what is asked of it.
type source struct {
	items         got
	begun, ended  int
	asked, passed int
}

func (s *source) all(yield func(int, error) bool) {
	s.begun++
	defer func() { s.ended++ }()
	for _, n := range s.items {
		s.asked++
		var err error
		if n < 0 {
			n, err = 0, errBroken
		}
		if !yield(n, err) {
			return
		}
		s.passed++
	}
}

func TestRepeat(t *testing.T) {
	for _, row := range []struct {
		name  string
		items got
		times int
		want  got
	}{
		{"once", got{1, 2}, 1, got{1, 2}},
		{"three times", got{1, 2}, 3, got{1, 2, 1, 2, 1, 2}},
		{"an error ends with its pass", got{1, -1, 2}, 3, got{1, -1, 2}},
		{"errors alone", got{-1}, 1000, got{-1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &source{items: row.items}
			repeated := data.Repeat(s.all, row.times)
			require.Equal(t, row.want, list(t, repeated, -1))
			require.Equal(t, row.want, list(t, repeated, -1), "it can be iterated again")
			require.Equal(t, s.begun, s.ended)
		})
	}
}

func TestRepeat_withoutEnd(t *testing.T) {
	s := &source{items: got{1, 2, 3}}
	const n = 300_001
	all := list(t, data.Repeat(s.all, math.MaxInt), n)
	require.Len(t, all, n)
	require.Equal(t, got{1, 2, 3, 1}, all[n-4:])
	require.Equal(t, n, s.asked, "the source is not asked for more than was taken")
	require.Equal(t, s.begun, s.ended, "an early stop reaches the source")
}

func TestF37_repeatOfNothingIsAnError(t *testing.T) {
	once, cases := false, 0
	for _, row := range []struct {
		name  string
		of    iter.Seq2[int, error]
		want  string
		whole int
	}{
		{"empty, forever", data.Repeat((&source{}).all, math.MaxInt), "data: repeat: pass 1 returned no batch: the source is empty, or cannot be iterated again", 0},
		{"empty", data.Repeat((&source{}).all, 3), "data: repeat: pass 1 returned no batch: the source is empty, or cannot be iterated again", 0},
		{"a source for one time", data.Repeat(func(yield func(int, error) bool) {
			if !once {
				once = true
				yield(7, nil)
			}
		}, math.MaxInt), "data: repeat: pass 2 returned no batch: the source is empty, or cannot be iterated again", 1},
		{"times", data.Repeat((&source{items: got{1}}).all, 0), "data: repeat 0 times: expected at least 1", 0},
		{"less than none", data.Repeat((&source{items: got{1}}).all, -1), "data: repeat -1 times: expected at least 1", 0},
		{"nil", data.Repeat[int](nil, 1), "data: repeat: there is no source (nil)", 0},
		{"nil, forever", data.Repeat[int](nil, math.MaxInt), "data: repeat: there is no source (nil)", 0},
		{"take of less than none", data.Take((&source{items: got{1}}).all, -1), "data: take -1 batches: expected at least 0", 0},
		{"take of nil", data.Take[int](nil, 1), "data: take: there is no source (nil)", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			whole, failed := 0, 0
			for _, err := range row.of {
				if err == nil {
					whole++
					continue
				}
				failed++
				require.EqualError(t, err, row.want)
			}
			require.Equal(t, row.whole, whole)
			require.Equal(t, 1, failed)
			cases++
		})
	}
	t.Logf("F37: %d sequences without a batch or with a limit that makes no sense: one error each, none spins", cases)
}

func TestTake(t *testing.T) {
	for _, row := range []struct {
		name  string
		items got
		n     int64
		want  got
		asked int
	}{
		{"none", got{1, 2}, 0, nil, 0},
		{"some", got{1, 2, 3}, 2, got{1, 2}, 2},
		{"all", got{1, 2, 3}, 3, got{1, 2, 3}, 3},
		{"more than there are", got{1, 2, 3}, 9, got{1, 2, 3}, 3},
		{"of nothing", nil, 2, nil, 0},
		{"an error counts", got{1, -1, 3}, 2, got{1, -1}, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := &source{items: row.items}
			taken := data.Take(s.all, row.n)
			require.Equal(t, row.want, list(t, taken, -1))
			require.Equal(t, row.asked, s.asked, "no batch is made that nobody takes")
			require.Equal(t, s.begun, s.ended)
			require.Equal(t, row.want, list(t, taken, -1), "it can be iterated again")
		})
	}
}

// Take of Repeat is the passes laid end to end and cut, for a consumer that stops anywhere.
func TestTakeOfRepeat_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := got(rapid.SliceOfN(rapid.IntRange(0, 9), 1, 6).Draw(t, "items"))
		times := rapid.IntRange(1, 5).Draw(t, "times")
		n := rapid.IntRange(0, 40).Draw(t, "n")
		most := rapid.IntRange(1, 40).Draw(t, "consumed")
		want := slices.Repeat(items, times)
		want = want[:min(len(want), n, most)]
		s := &source{items: items}
		all := list(t, data.Take(data.Repeat(s.all, times), int64(n)), most)
		require.Equal(t, []int(want), append([]int{}, all...))
		require.Equal(t, len(want), s.asked)
		require.Equal(t, s.begun, s.ended)
		ahead := list(t, data.Prefetch(data.Take(data.Repeat(s.all, math.MaxInt), int64(n)), 2), most)
		require.Equal(t, append([]int{}, slices.Repeat(items, 40)[:min(n, most)]...), append([]int{}, ahead...))
	})
}

// A batch stays as it was while all that follow it are made: blocks of steps hold several of them at once.
func TestBatchesStayWhileTheyAreHeld(t *testing.T) {
	const n = 23
	x, y := make([]float32, n*2), make([]int32, n)
	for i := range n {
		x[2*i], x[2*i+1], y[i] = float32(i), float32(-i), int32(i)
	}
	set, err := data.New(data.X(x, n, 2), data.Y(y, n))
	require.NoError(t, err)
	for _, row := range []struct {
		name string
		of   iter.Seq2[data.Batch, error]
		want int
	}{
		{"in order", data.Take(set.Batches(4, data.Kept).From(0), 18), 18},
		{"shuffled", data.Take(set.Batches(4, data.Shuffle(1)).From(0), 15), 15},
		{"repeated and taken", data.Take(data.Repeat(set.Batches(4, data.Shuffle(1), data.Kept).All(), math.MaxInt), 20), 20},
		{"ahead", data.Prefetch(data.Take(data.Repeat(set.Batches(4, data.Shuffle(1)).All(), math.MaxInt), 20), 3), 20},
	} {
		t.Run(row.name, func(t *testing.T) {
			var held, copies []data.Batch
			for b, err := range row.of {
				require.NoError(t, err)
				held, copies = append(held, b), append(copies, clone(b))
			}
			require.Len(t, held, row.want)
			require.Equal(t, copies, held)
			t.Logf("%d batches held at once, 0 changed", len(held))
		})
	}
}

// clone copies a batch down to its elements.
func clone(b data.Batch) data.Batch {
	b.Fields = slices.Clone(b.Fields)
	for i, f := range b.Fields {
		flat := reflect.ValueOf(f.Array.Flat)
		b.Fields[i].Array.Flat = reflect.AppendSlice(reflect.MakeSlice(flat.Type(), 0, flat.Len()), flat).Interface()
		b.Fields[i].Array.Dims = slices.Clone(f.Array.Dims)
	}
	return b
}

func ExampleRepeat() {
	set, err := data.New(data.X([]float32{0, 1, 2, 3}, 4))
	if err != nil {
		log.Fatal(err)
	}
	for batch, err := range data.Repeat(set.Batches(2, data.Shuffle(1)).All(), 2) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Fields[0].Array.Flat)
	}
	// Output:
	// [3 0]
	// [2 1]
	// [3 0]
	// [2 1]
}

func ExampleRepeat_withoutEnd() {
	set, err := data.New(data.X([]float32{0, 1, 2}, 3))
	if err != nil {
		log.Fatal(err)
	}
	batches := data.Repeat(set.Batches(1).All(), math.MaxInt)
	for batch, err := range data.Take(batches, 5) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(batch.Fields[0].Array.Flat)
	}
	// Output:
	// [0]
	// [1]
	// [2]
	// [0]
	// [1]
}

func ExampleTake() {
	train, _, err := data.Digits()
	if err != nil {
		log.Fatal(err)
	}
	examples := 0
	for batch, err := range data.Take(train.Batches(128).All(), 3) { // a first try, on three batches
		if err != nil {
			log.Fatal(err)
		}
		examples += batch.Samples()
	}
	fmt.Println(examples, "of", train.Len(), "examples")
	// Output:
	// 384 of 1437 examples
}
