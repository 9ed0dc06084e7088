package managed_test

import (
	"math"

	"github.com/lazo-ml/lazo/data"
)

// sequences are 2 sequences of 3 labels, -1 where they are filled up, with logits of 2 classes. A logit that does not
// count is NaN.
func sequences() data.Batch {
	nan := float32(math.NaN())
	return data.Batch{Size: 2, Fields: []data.Field{
		data.Named("logits", []float32{0, 1, 2, 0, nan, nan, 0, 0, nan, 1, nan, 3}, 2, 3, 2),
		data.Named("labels", []int32{1, 1, -1, 0, -1, -1}, 2, 3),
		data.Named("mask", []float32{1, 1, 0, 1, 0, 0}, 2, 3),
		data.Named("none", make([]float32, 6), 2, 3),
	}}
}
