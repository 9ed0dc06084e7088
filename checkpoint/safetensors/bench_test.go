package safetensors_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// model is 64 MB in 16 tensors.
func model() ([]safetensors.Tensor, []byte) {
	const bytesEach = 4 << 20
	var tensors []safetensors.Tensor
	for i := range 16 {
		tensors = append(tensors, safetensors.Tensor{Name: string(rune('a' + i)), DType: safetensors.F32, Dims: []int{bytesEach / 4}})
	}
	data := make([]byte, bytesEach)
	for i := range data {
		data[i] = byte(i * i >> 9)
	}
	return tensors, data
}

// `beside` runs raw and ours in turn and reports their speeds, and the ratio of their times.
func beside(b *testing.B, size int, raw, ours func()) {
	var rawTime, ourTime time.Duration
	for b.Loop() {
		start := time.Now()
		raw()
		middle := time.Now()
		ours()
		rawTime += middle.Sub(start)
		ourTime += time.Since(middle)
	}
	speed := func(t time.Duration) float64 { return float64(size) * float64(b.N) / 1e9 / t.Seconds() }
	b.ReportMetric(speed(rawTime), "raw-GB/s")
	b.ReportMetric(speed(ourTime), "safetensors-GB/s")
	b.ReportMetric(float64(ourTime)/float64(rawTime), "ratio")
	b.ReportMetric(0, "ns/op")
}

func writeModel(b *testing.B, to io.Writer, tensors []safetensors.Tensor, data []byte) {
	w, err := safetensors.NewWriter(to, tensors, nil)
	require.NoError(b, err)
	for _, tensor := range tensors {
		_, err := w.Write(tensor.Name, data)
		require.NoError(b, err)
	}
	require.NoError(b, w.Close())
}

// BenchmarkWrite writes to a file with checksums, and compares with plain writes of the same bytes. Neither waits for
// the disk.
func BenchmarkWrite(b *testing.B) {
	tensors, data := model()
	path := filepath.Join(b.TempDir(), "model")
	to := func(write func(*os.File)) {
		file, err := os.Create(path)
		require.NoError(b, err)
		write(file)
		require.NoError(b, file.Close())
	}
	beside(b, len(tensors)*len(data), func() {
		to(func(file *os.File) {
			for range tensors {
				_, err := file.Write(data)
				require.NoError(b, err)
			}
		})
	}, func() {
		to(func(file *os.File) { writeModel(b, file, tensors, data) })
	})
}

// BenchmarkRead reads all tensors of a file with checksums, and compares with one plain read of the same bytes. Both
// read into memory that was used before, from the system's cache.
func BenchmarkRead(b *testing.B) {
	tensors, data := model()
	path := filepath.Join(b.TempDir(), "model")
	var whole bytes.Buffer
	writeModel(b, &whole, tensors, data)
	require.NoError(b, os.WriteFile(path, whole.Bytes(), 0o600))
	file, err := os.Open(path)
	require.NoError(b, err)
	defer file.Close()
	into := make([]byte, len(data))
	size := int64(whole.Len())
	beside(b, len(tensors)*len(data), func() {
		for i := range tensors {
			_, err := file.ReadAt(into, size-int64((i+1)*len(data)))
			require.NoError(b, err)
		}
	}, func() {
		r, err := safetensors.NewReader(file, size, safetensors.Limits{})
		require.NoError(b, err)
		for _, tensor := range tensors {
			_, err := r.ReadInto(tensor.Name, into)
			require.NoError(b, err)
		}
	})
}
