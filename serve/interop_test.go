package serve_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/serve"
)

// NVIDIA's client exchanges tensors of every type, binary and as JSON, compressed and not.
func TestInteropTriton(t *testing.T) {
	interpreter := os.Getenv("LAZO_PYTHON")
	if interpreter == "" {
		t.Skip("NOT TESTED against the Python package: make interop does that")
	}
	echo := serve.Func(func(_ context.Context, batch data.Batch) (map[string]data.Array, error) {
		n := batch.Fields[0].Array.Len()
		out := map[string]data.Array{"words": {Flat: strings.Split(strings.Repeat("wört ", n), " ")[:n], Dims: []int{n}}}
		for _, f := range batch.Fields {
			out[f.Name] = f.Array
		}
		return out, nil
	})
	b, err := serve.New(echo, data.Batch{Fields: ofEachType()}, serve.Batching{MaxBatch: 4, Queue: 1000})
	require.NoError(t, err)
	defer b.Close()
	require.NoError(t, b.Warm(t.Context()))
	h, err := serve.NewHandler(map[string]*serve.Batcher{"all": b}, serve.Options{})
	require.NoError(t, err)
	s := httptest.NewServer(h)
	defer s.Close()
	out, err := exec.CommandContext(t.Context(), interpreter, "testdata/triton_check.py", strings.TrimPrefix(s.URL, "http://")).CombinedOutput()
	require.NoError(t, err, string(out))
	t.Logf("%s", out)
}

func ofEachType() (fields []data.Field) {
	for name, flat := range map[string]any{"bool": make([]bool, 2), "i8": make([]int8, 2), "i16": make([]int16, 2), "i32": make([]int32, 2), "i64": make([]int64, 2),
		"u8": make([]uint8, 2), "u16": make([]uint16, 2), "u32": make([]uint32, 2), "u64": make([]uint64, 2), "f32": make([]float32, 2), "f64": make([]float64, 2)} {
		fields = append(fields, data.Named(name, flat, 1, 2))
	}
	return fields
}
