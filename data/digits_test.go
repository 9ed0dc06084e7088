package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/internal/datatest"
)

func digest(t *testing.T, flat any) string {
	sum := sha256.New()
	require.NoError(t, binary.Write(sum, binary.LittleEndian, flat))
	return hex.EncodeToString(sum.Sum(nil))
}

func TestDigits(t *testing.T) {
	require.Equal(t, "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22", digest(t, []byte(digitsCSV)))
	train, test, err := Digits()
	require.NoError(t, err)
	for _, c := range []struct {
		set  *Set
		n    int
		sumX float64
		sumY int
	}{{train, 1437, 28091.3125, 6507}, {test, 360, 7016.0625, 1563}} {
		require.Equal(t, c.n, c.set.Len())
		x, y := c.set.Fields()[0], c.set.Fields()[1]
		require.Equal(t, "x", x.Name)
		require.Equal(t, "y", y.Name)
		require.Equal(t, []int{c.n, 8, 8, 1}, x.Array.Dims)
		require.Equal(t, []int{c.n}, y.Array.Dims)
		sumX, sumY := 0.0, 0
		for _, v := range x.Array.Flat.([]float32) {
			require.True(t, 0 <= v && v <= 1)
			sumX += float64(v)
		}
		for _, v := range y.Array.Flat.([]int32) {
			sumY += int(v)
		}
		require.Equal(t, c.sumX, sumX)
		require.Equal(t, c.sumY, sumY)
	}
	// Digests of the arrays that the benchmark in Python makes.
	require.Equal(t, "01bd491a29bd9f7233205b7f121fe45c35a761b1bd2a2d2ac48079d8c277196c", digest(t, test.fields[0].Array.Flat))
	require.Equal(t, "cae89a830a523025dfc168f0c89a8bf78e96cfcc650744b4e28a38ab231fba59", digest(t, test.fields[1].Array.Flat))
}

func TestReadDigitsRefuses(t *testing.T) {
	row := strings.Repeat("16,", 64) + "9\n"
	for _, c := range []struct{ name, csv, rows, want string }{
		{"fine", row + row, "1", ""},
		{"pixel", row + strings.Replace(row, "16", "17", 1), "0", `line 2: column 1 is "17", expected a pixel from 0 to 16`},
		{"no number", strings.Replace(row, "16", "", 1), "0", `line 1: column 1 is ""`},
		{"label", strings.Replace(row, "9", "10", 1), "0", `column 65 is "10", expected a label from 0 to 9`},
		{"too long", strings.Replace(row, "9", "9,9", 1), "0", `column 65 is "9,9"`},
		{"too short", "1,2\n", "0", `line 1: column 3 is ""`},
		{"row past the end", row, "1", `test row "1", expected a new one from 0 to 0`},
		{"row twice", row, "0 0", "expected a new one"},
		{"row no number", row, "x", `test row "x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			train, test, err := readDigits(string(datatest.Gzip(t, []byte(c.csv))), c.rows)
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, []int{1, 1}, []int{train.Len(), test.Len()})
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
	_, _, err := readDigits("no gzip", "")
	require.Error(t, err)
}

func BenchmarkDigits(b *testing.B) {
	for range b.N {
		if _, _, err := Digits(); err != nil {
			b.Fatal(err)
		}
	}
}
