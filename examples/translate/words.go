package main

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data"
)

// words is a language's sorted vocabulary; indices are tokens, 0 (empty) ends a sentence.
type words []string

type languages struct{ source, target words }

func wordsOf(pairs []pair) languages {
	all := languages{words{""}, words{""}}
	for _, p := range pairs {
		all.source, all.target = append(all.source, p.source...), append(all.target, p.target...)
	}
	slices.Sort(all.source)
	slices.Sort(all.target)
	return languages{slices.Compact(all.source), slices.Compact(all.target)}
}

func (w words) numbers(sentence []string) ([]int32, error) {
	var all []int32
	for _, word := range append(slices.Clone(sentence), "") {
		n, known := slices.BinarySearch(w, word)
		if !known {
			return nil, fmt.Errorf("%q is not a word of this language", word)
		}
		all = append(all, int32(n))
	}
	return all, nil
}

func (w words) text(numbers []int32) string {
	var all []string
	for _, n := range numbers {
		if n <= end {
			break
		}
		all = append(all, w[n])
	}
	return strings.Join(all, " ")
}

func (l languages) batches(pairs iter.Seq2[pair, error]) iter.Seq2[data.Batch, error] {
	length := func(p pair) int { return max(len(p.source), len(p.target)) + 1 }
	return data.Map(data.Buckets(pairs, batchSize, data.Kept, length, buckets...), l.batch)
}

func (l languages) batch(b data.Bucket[pair]) (data.Batch, error) {
	var sources, targets [][]int32
	var lengths []int32
	for _, p := range b.Items {
		source, err := l.source.numbers(p.source)
		if err != nil {
			return data.Batch{}, err
		}
		target, err := l.target.numbers(p.target)
		if err != nil {
			return data.Batch{}, err
		}
		sources, targets, lengths = append(sources, source), append(targets, target), append(lengths, int32(len(source)))
	}
	x, _, err := data.PadSequences(sources, end, b.Length)
	if err != nil {
		return data.Batch{}, err
	}
	y, _, err := data.PadSequences(targets, -100, b.Length)
	return data.Batch{Size: len(lengths), Fields: []data.Field{
		{Name: "source", Array: x}, data.Named("lengths", lengths, len(lengths)), {Name: "target", Array: y},
	}}, err
}
