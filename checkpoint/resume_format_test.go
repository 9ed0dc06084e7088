package checkpoint_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/loop"
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

// F39: every format that lazo ever wrote can be loaded, and a future one is refused by its number.
func TestF39_keptFormats(t *testing.T) {
	kept, later := filepath.Join("testdata", "format-1"), filepath.Join("testdata", "format-99")
	if _, err := os.Stat(kept); *writeFixtures && errors.Is(err, fs.ErrNotExist) {
		f, err := checkpoint.Open(kept, checkpoint.Options{})
		require.NoError(t, err)
		saveOnce(t, f, oldState(), loop.Elapsed{Steps: 7, Samples: 70}, []float64{0.25, math.NaN()})
		require.NoError(t, errors.Join(f.Close(), os.Remove(filepath.Join(kept, "LOCK"))))
		future(t, kept, later)
	}
	open := func(from string) *checkpoint.Folder {
		dir := filepath.Join(t.TempDir(), "copy")
		require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
		f, err := checkpoint.Open(dir, checkpoint.Options{Log: quiet})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		return f
	}
	state := &valued{}
	result, err := looked(open(kept), state)
	require.NoError(t, err)
	require.EqualValues(t, 8, result.Elapsed.Steps)
	require.EqualValues(t, 71, result.Elapsed.Samples)
	want := oldState()
	require.ElementsMatch(t, want.tensors, state.tensors)
	require.Equal(t, want.metrics, state.metrics)
	require.Len(t, state.params, len(want.params))
	for name, x := range want.params {
		same(t, x, state.params[name])
	}
	last, err := result.History.Last("entry0")
	require.NoError(t, err)
	require.Equal(t, 0.25, last)

	_, err = looked(open(later), state)
	require.ErrorIs(t, err, checkpoint.ErrNewer)
	require.ErrorContains(t, err, "format 99, this lazo reads up to 2: written by a newer lazo; load it with that one")
	t.Log("F39: the kept checkpoint of format 1 is resumed with every bit; that of format 99 is refused by its number")
}
