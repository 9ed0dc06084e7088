package main

import (
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

// data60k is a set that is cut into contiguous batches, in order, for ever.
type data60k struct {
	set   *data.Set
	batch int
}

func (d data60k) batches() loop.Data[data.Batch] { return d.set.Batches(d.batch, data.Forever()) }
