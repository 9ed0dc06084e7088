package serve_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/serve"
)

// Each datatype comes back as it was sent.
func TestHandler_datatypes(t *testing.T) {
	for _, row := range []struct {
		datatype string
		flat     any
		data     string
	}{
		{"BOOL", []bool{true, false}, "[true,false]"},
		{"INT8", []int8{-128, 127}, "[-128,127]"}, {"INT16", []int16{-1 << 15, 1<<15 - 1}, "[-32768,32767]"},
		{"INT32", []int32{-1 << 31, 1<<31 - 1}, "[-2147483648,2147483647]"},
		{"INT64", []int64{math.MinInt64, math.MaxInt64}, "[-9223372036854775808,9223372036854775807]"},
		{"UINT8", []uint8{0, 255}, "[0,255]"}, {"UINT16", []uint16{0, 1<<16 - 1}, "[0,65535]"},
		{"UINT32", []uint32{0, 1<<32 - 1}, "[0,4294967295]"}, {"UINT64", []uint64{0, math.MaxUint64}, "[0,18446744073709551615]"},
		{"FP32", []float32{1e-7, 16777217}, "[1e-07,1.6777216e+07]"}, {"FP64", []float64{1e-300, 16777217}, "[1e-300,1.6777217e+07]"},
	} {
		echo := serve.Func(func(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
			require.IsType(t, row.flat, batch.Fields[0].Array.Flat)
			return map[string]data.Array{"x": batch.Fields[0].Array}, nil
		})
		b, err := serve.New(echo, data.Batch{Fields: []data.Field{data.X(row.flat, 2)}}, serve.Batching{MaxBatch: 2})
		require.NoError(t, err)
		h, err := serve.NewHandler(map[string]*serve.Batcher{"echo": b}, serve.Options{})
		require.NoError(t, err)
		tensor := fmt.Sprintf(`{"name":"x","shape":[2],"datatype":%q,"data":%s}`, row.datatype, row.data)
		status, answer, _ := call(h, "POST", "/v2/models/echo/infer", `{"inputs":[`+tensor+`]}`)
		require.Equal(t, 200, status, answer)
		require.Contains(t, answer, `"data":`+row.data)
		require.JSONEq(t, `{"model_name":"echo","model_version":"1","outputs":[`+tensor+`]}`, answer)
		require.NoError(t, b.Close())
	}
}
