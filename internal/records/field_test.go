package records

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFields_areExact(t *testing.T) {
	for path, texts := range map[string][]string{
		"elapsed.steps": {"0", "9007199254740993", "9223372036854775807"},
		"elapsed.time":  {"0", "0.000000001", "12.345", "9223372036.854775807", "-1.5"},
		"elapsed.date":  {"2026-11-29T21:47:25Z", "1999-12-31T23:59:59.999999999Z"},
		"elapsed.row":   {"3"},
	} {
		for _, text := range texts {
			var at Elapsed
			require.NoError(t, fieldOf(path).parse(&at, text))
			require.Equal(t, text, string(fieldOf(path).append(nil, at)), path)
		}
	}
	for path, wrong := range map[string]string{
		"elapsed.steps": "1.5", "elapsed.time": "1h", "elapsed.date": "2300-01-01T00:00:00Z", "elapsed.samples": "9223372036854775808",
	} {
		require.ErrorContains(t, fieldOf(path).parse(&Elapsed{}, wrong), "want ", path)
	}
	for path, at := range map[string]Elapsed{"elapsed.batch": {Batch: UnknownBatch}, "elapsed.row": {}, "elapsed.date": {}} {
		require.Empty(t, fieldOf(path).append(nil, at), path)
	}
	require.True(t, math.IsNaN(unixSeconds(Elapsed{})))
	require.Equal(t, 1.5, unixSeconds(Elapsed{Date: int64(1500 * time.Millisecond)}))
}

func TestNumbers_areExact(t *testing.T) {
	for _, v := range []float64{0, 0.1, -1e300, math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1)} {
		got, err := parseNumber(string(appendNumber(nil, v)))
		require.NoError(t, err)
		require.Equal(t, v, got)
	}
	require.Equal(t, "NaN", string(appendNumber(nil, math.NaN())))
	require.Equal(t, "-Infinity", string(appendNumber(nil, math.Inf(-1))))
	_, err := parseNumber("1e400")
	require.ErrorContains(t, err, `want a number of 64 bits, got "1e400"`)
}

func TestColumn(t *testing.T) {
	column, err := Column("train", "loss.x")
	require.NoError(t, err)
	collection, name, err := SplitColumn(column)
	require.NoError(t, err)
	require.Equal(t, []string{"train", "loss.x"}, []string{collection, name})
	for _, row := range [][2]string{{"", "loss"}, {"train", ""}, {"elapsed", "steps"}, {"a.b", "loss"}, {"train", "a\nb"}, {"train", "\xff"}} {
		_, err := Column(row[0], row[1])
		require.ErrorIs(t, err, ErrName, "%q", row)
	}
}
