package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// testdata/tables.txt has the tables of the kept measurements.
func TestDocument(t *testing.T) {
	list, err := tables("testdata", 32)
	require.NoError(t, err)
	require.Len(t, list, 9)
	text, err := os.ReadFile("testdata/tables.txt")
	require.NoError(t, err)
	require.Equal(t, string(text), printed(list), "write it again: go run ./cmd/bench/scale -write")
}

func TestDigits(t *testing.T) {
	for x, expected := range map[float64]string{0: "0", 0.01234: "0.0123", 0.5: "0.5", 1: "1", 1.239: "1.24", 12.34: "12.3", 123.4: "123", 1234567: "1,234,567"} {
		require.Equal(t, expected, digits(x))
	}
	require.Equal(t, "1.5 ms", seconds(0.0015))
	require.Equal(t, "2.5 s", seconds(2.5))
	require.Equal(t, "40 µs", seconds(40e-6))
	require.Equal(t, "4 KiB", size(4096))
	require.Equal(t, "100 MB", size(100e6))
	require.Equal(t, "1 MiB", size(1<<20))
}
