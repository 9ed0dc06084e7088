package pretrained_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes/float16"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/pretrained"
)

// Numbers become the nearest one of float16, at halves the even one, also those below the smallest normal number.
func TestHalf(t *testing.T) {
	number := func(bits int) float64 { return float64(float16.FromBits(uint16(bits)).Float32()) }
	for bits := range 0x7bff {
		x, next := number(bits), number(bits+1)
		middle := float32((x + next) / 2)
		for _, of := range []struct {
			y    float32
			want int
		}{{math.Nextafter32(middle, 0), bits}, {middle, bits + bits&1}, {math.Nextafter32(middle, 1e9), bits + 1}} {
			require.Equal(t, uint16(of.want), pretrained.ToHalf(of.y), "%g", of.y)
			require.Equal(t, uint16(of.want)|0x8000, pretrained.ToHalf(-of.y), "%g", -of.y)
		}
		require.Equal(t, uint16(bits), pretrained.ToHalf(float32(x)))
	}
	require.Equal(t, uint16(0x7c00), pretrained.ToHalf(65520))
	require.Equal(t, uint16(0x7bff), pretrained.ToHalf(65519))
}
