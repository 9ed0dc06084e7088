package mpi

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

func TestHostExchanges(t *testing.T) {
	onRanks(t, 3, func(t *testing.T, w *World) {
		t.Logf("rank %d of %d, %d of %d here, %s (%s), %s, %v", w.Rank(), w.Size(), w.LocalRank(), w.LocalSize(), w.Library().Version(), w.Library().Flavour(), w.Library().Path(), w.Warnings())
		words := []int64{int64(w.Rank()), -int64(w.Rank()), 7}
		require.NoError(t, w.Max(words))
		assert.Equal(t, []int64{2, 0, 7}, words)
		sums := []float32{float32(w.Rank()), 0.5}
		require.NoError(t, w.Sum(sums))
		assert.Equal(t, []float32{3, 1.5}, sums)
		require.NoError(t, w.Sum(nil))
		data := []byte{byte(w.Rank()), 1}
		require.NoError(t, w.Broadcast(1, data))
		assert.Equal(t, []byte{1, 1}, data)
		parts, err := w.AllGather([]byte{byte(w.Rank()), 9})
		require.NoError(t, err)
		assert.Equal(t, []byte{0, 9, 1, 9, 2, 9}, parts)
		require.NoError(t, w.Barrier())
	})
}

const sumProgram = `module @sum {
func.func @main(%x: tensor<4xf32>, %y: tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %t = stablehlo.create_token : !stablehlo.token
  %r:3 = stablehlo.custom_call @lazo.all_reduce(%x, %y, %t) {api_version = 4 : i32, backend_config = {site = 3 : i64, op = 0 : i64, groups = array<i64: 0, 1>, group_size = 2 : i64}} : (tensor<4xf32>, tensor<2xf32>, !stablehlo.token) -> (tensor<4xf32>, tensor<2xf32>, !stablehlo.token)
  return %r#0, %r#1 : tensor<4xf32>, tensor<2xf32>
}}`

func TestSum(t *testing.T) {
	onRanks(t, 2, func(t *testing.T, w *World) {
		r := float32(w.Rank())
		x := pjrt.Array{Shape: pjrt.Shape{DType: pjrt.Float32, Dims: []int{4}}, Data: pjrt.Bytes([]float32{r, 1, 2, 3})}
		y := pjrt.Array{Shape: pjrt.Shape{DType: pjrt.Float32, Dims: []int{2}}, Data: pjrt.Bytes([]float32{10 * r, 5})}
		out := run(t, compile(t, sumProgram), x, y)
		assert.Equal(t, pjrt.Bytes([]float32{1, 2, 4, 6}), out[0])
		assert.Equal(t, pjrt.Bytes([]float32{10, 10}), out[1])
		e := w.Exchanges()
		assert.EqualValues(t, 1, e.Begun)
		assert.EqualValues(t, 1, e.Ended)
		assert.EqualValues(t, 3, e.Site)
		assert.EqualValues(t, 24, e.Bytes)
		assert.Equal(t, "all_reduce", e.Kind)
	})
}
