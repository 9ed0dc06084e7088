package main

import (
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/data"
)

func digits(set *data.Set, first int32) *data.Set {
	var rows []int
	var labels []int32
	x, y := set.Fields()[0].Array, set.Fields()[1].Array
	for i, digit := range y.Flat.([]int32) {
		if digit >= first && digit < first+5 {
			rows, labels = append(rows, i), append(labels, digit-first)
		}
	}
	five := must.M1(data.New(data.Field{Name: "x", Array: x.Gather(rows)}, data.Y(labels, len(labels))))
	return five
}
