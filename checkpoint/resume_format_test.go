package checkpoint_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// oldState is the state of the kept fixture of format 1. It never changes: a later format gets another one.
func oldState() *valued {
	return &valued{
		params:  checkpoint.Params{"int": int64(math.MinInt64), "uint": uint64(math.MaxUint64), "nan": math.NaN(), "text": "Größe <&>", "bytes": []byte{0, 255}},
		metrics: map[string]float64{"loss": 0.1, "inf": math.Inf(-1)},
		tensors: []checkpoint.Tensor{
			{Name: "/dense/weights", DType: safetensors.F32, Dims: []int{2, 3}, Data: safetensors.Bytes([]float32{1, -2, 3.5, float32(math.Inf(1)), 0.1, -0.5})},
			{Name: "/é", DType: safetensors.BF16, Dims: []int{}, Data: []byte{0x80, 0x3f}},
			{Name: "/empty", DType: safetensors.U8, Dims: []int{0, 3}, Data: []byte{}},
		},
		runsOn: map[string]string{"plugin": "cpu 0.0.1"},
	}
}

// future changes the fixture to an unknown format.
func future(t *testing.T, from, to string) {
	t.Helper()
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	manifest := filepath.Join(to, dir(8), "manifest.json")
	text, err := os.ReadFile(manifest)
	require.NoError(t, err)
	later := strings.Replace(string(text), `"format": 1`, `"format": 99, "shards": []`, 1)
	require.NoError(t, os.WriteFile(manifest, []byte(later), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(to, dir(8), "COMMIT"), fmt.Appendf(nil, "%x  manifest.json\n", sha256.Sum256([]byte(later))), 0o600))
}
