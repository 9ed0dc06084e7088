package datatest

import (
	"bytes"
	"compress/gzip"
	"iter"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Sizes calls each function with small, negative and huge numbers. A call must not panic, nor take the memory that
// the number names. A negative number must be an error, unless the name contains "Size".
func Sizes(t *testing.T, calls map[string]func(n int) error) {
	made, refused := 0, 0
	for name, call := range calls {
		for _, n := range []int{math.MinInt, -1, 0, 1, 1 << 15, math.MaxInt - 4096, math.MaxInt - 1, math.MaxInt} {
			var err error
			took := Allocated(func() { require.NotPanics(t, func() { err = call(n) }, "%s of %d", name, n) })
			require.Less(t, took, uint64(64<<20), "%s of %d", name, n)
			if made++; err != nil {
				require.NotContains(t, err.Error(), "panic: ", "%s of %d", name, n)
				refused++
			}
			if n < 0 && !strings.Contains(name, "Size") {
				require.Error(t, err, "%s of %d", name, n)
			}
		}
	}
	t.Logf("%d numbers that determine a size or limit, %d calls, %d refused", len(calls), made, refused)
}

func Allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func First[B any](s iter.Seq2[B, error]) error {
	for _, err := range s {
		return err
	}
	return nil
}

func Second[T any](_ T, err error) error { return err }

func Gzip(t require.TestingT, file []byte) []byte {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(file)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return packed.Bytes()
}
