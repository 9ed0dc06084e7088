package main

import "math/rand/v2"

const (
	opens = iota
	closes
	letter
	signs = 2 + 4
)

const shortest, longest = 4, 32

// A tag is 1 for matched brackets and their content, else 0: it depends on both directions.
type line struct{ signs, tags []int32 }

func lines(seed uint64, n int) []line {
	random, all := rand.New(rand.NewPCG(seed, 0)), make([]line, n)
	for i := range all {
		row := make([]int32, shortest+random.IntN(longest-shortest+1))
		for k := range row {
			if row[k] = int32(random.IntN(3)); row[k] == letter {
				row[k] += int32(random.IntN(signs - letter))
			}
		}
		all[i] = line{row, tagsOf(row)}
	}
	return all
}

func tagsOf(row []int32) []int32 {
	tags := make([]int32, len(row))
	var open []int // of unmatched brackets
	for i, sign := range row {
		if last := len(open) - 1; sign == opens {
			open = append(open, i)
		} else if sign == closes && last >= 0 {
			for k := open[last]; k <= i; k++ {
				tags[k] = 1
			}
			open = open[:last]
		}
	}
	return tags
}
