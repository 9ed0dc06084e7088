package strategies

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

func TestDividedBatch(t *testing.T) {
	rows := func(n int) data.Batch {
		return data.Batch{Size: n, Fields: []data.Field{data.X(make([]float32, 2*n), n, 2), {Name: "scalar", Array: data.Array{Flat: []float32{1}}}}}
	}
	p := &parallel{devices: 8, model: 2} // 4 parts of a batch
	b, err := p.dividedBatch(rows(8))
	require.NoError(t, err)
	require.Equal(t, rows(8), b)
	_, err = p.dividedBatch(rows(6))
	require.ErrorIs(t, err, ErrLeftover)
	require.ErrorContains(t, err, "a batch of 6 examples over 4 devices: ")
	require.ErrorContains(t, err, "use a batch size that is a multiple of 4, or Parallel.Pad")
	p.pad = true
	field := rows(6)
	field.Fields = field.Fields[:1]
	b, err = p.dividedBatch(field)
	require.NoError(t, err)
	require.Equal(t, []int{8, 2}, b.Fields[0].Array.Dims)
	require.Equal(t, 6, b.Size)
}
