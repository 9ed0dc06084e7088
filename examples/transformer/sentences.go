package main

import (
	"math/rand/v2"
	"slices"

	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
)

const most = 10

var (
	names      = []string{"ann", "ben", "cho", "dan", "eva", "fay"}
	fillers    = []string{"today", "now", "then", "quickly", "gladly", "again"}
	vocabulary = slices.Concat([]string{"gives_to", "gets_from"}, names, fillers)
)

// sentences makes n sentences, padded to length words: fillers, a name, fillers, a verb, fillers, another name,
// fillers. Each word's label is the final owner: the second name for "gives_to", the first for "gets_from". Without
// word order only half can be right.
func sentences(seed uint64, n, length int) *data.Set {
	random := rand.New(rand.NewPCG(seed, 0))
	ids, labels := make([][]int32, n), make([][]int32, n)
	for i := range ids {
		verb, people := random.IntN(2), random.Perm(len(names))
		ids[i] = []int32{int32(2 + people[0]), int32(verb), int32(2 + people[1])}
		for random.IntN(4) > 0 && len(ids[i]) < most {
			filler := int32(2 + len(names) + random.IntN(len(fillers)))
			ids[i] = slices.Insert(ids[i], random.IntN(len(ids[i])+1), filler)
		}
		labels[i] = slices.Repeat([]int32{int32(people[1-verb])}, len(ids[i]))
	}
	words, mask := must.M2(data.PadSequences(ids, 0, length))
	owners, _ := must.M2(data.PadSequences(labels, -100, length))
	set := must.M1(data.New(
		data.Field{Name: "input_ids", Array: words},
		data.Field{Name: "attention_mask", Array: mask},
		data.Field{Name: "labels", Array: owners}))
	return set
}
