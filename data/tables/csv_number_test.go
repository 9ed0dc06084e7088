package tables

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A number is that of strconv, to the last bit, and no text is a number that is none there.
func TestExactDecimal_isThatOfStrconv(t *testing.T) {
	check := func(t require.TestingT, text string) {
		v, ok := exactDecimal(text)
		if !ok {
			return
		}
		want, err := strconv.ParseFloat(text, 64)
		require.NoError(t, err, text)
		require.Equal(t, math.Float64bits(want), math.Float64bits(v), text)
		if once(v) {
			narrow, err := strconv.ParseFloat(text, 32)
			require.NoError(t, err, text)
			require.Equal(t, math.Float32bits(float32(narrow)), math.Float32bits(float32(v)), text)
		}
	}
	for _, text := range []string{"", "-", "+", ".", "-.", "1.", ".5", "-0", "0.0", "00.10", "1..2", "1.2.3", "9007199254740993", "9007199254740992", "16777217", "16777217.000000", "0.000000000000001",
		"3.4028235677973366", "8388608.5", "8388609.50000001", "1_0", "0x1", "1e5", "١"} {
		check(t, text)
	}
	v, ok := exactDecimal("-0")
	require.True(t, ok && math.Signbit(v))
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.StringMatching(`[-+]?[0-9]{0,12}\.?[0-9]{0,9}[0-9e.]?`).Draw(t, "text"))
	})
	for i := range 1 << 16 { // between two float32 in every way
		check(t, strconv.FormatFloat(float64(math.Float32frombits(0x3f800000+uint32(i)*7))+float64(i%3-1)*0x1p-24, 'f', 8+i%9, 64))
	}
}
