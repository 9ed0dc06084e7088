package strategies

import (
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

func cut(whole *tensors.Tensor, part shapes.Shape, start []int) (*tensors.Tensor, error) {
	t := tensors.FromShape(part)
	return t, move(whole, t, start, func(whole, part []byte) { copy(part, whole) })
}

func paste(whole, part *tensors.Tensor, start []int) error {
	return move(whole, part, start, func(whole, part []byte) { copy(whole, part) })
}

func move(whole, part *tensors.Tensor, start []int, each func(whole, part []byte)) error {
	size := whole.DType().Size()
	outer, inner := whole.Shape().Dimensions, part.Shape().Dimensions
	var err error
	outerErr := whole.MutableBytes(func(w []byte) {
		err = part.MutableBytes(func(p []byte) {
			if len(inner) == 0 {
				each(w, p)
				return
			}
			row := inner[len(inner)-1] * size
			index := make([]int, len(inner)-1)
			for len(p) > 0 {
				at := 0
				for i, n := range index {
					at = (at + start[i] + n) * outer[i+1]
				}
				at = (at + start[len(inner)-1]) * size
				each(w[at:at+row], p[:row])
				p = p[row:]
				for i := len(index) - 1; i >= 0; i-- {
					if index[i]++; index[i] < inner[i] {
						break
					}
					index[i] = 0
				}
			}
		})
	})
	if outerErr != nil {
		return outerErr
	}
	return err
}
