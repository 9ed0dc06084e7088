package optim_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/optim"
)

// Clipping by the global norm never increases the norm, nor leaves it above the limit, and keeps the direction. An
// update below the limit passes bit-identical.
func TestClipByGlobalNorm_law(t *testing.T) {
	const limit = 0.75
	update := updateOf(t, optim.Clip{GlobalNorm: limit})
	rapid.Check(t, func(t *rapid.T) {
		gradient := gradients(t)
		got := update(t, gradient)
		before, after := normOf(gradient), normOf(got)
		require.LessOrEqual(t, after, before)
		require.LessOrEqual(t, after, limit*(1+1e-6))
		if before < limit*(1-1e-6) {
			for i := range gradient {
				require.Equal(t, gradient[i]+0, got[i]+0)
			}
			return
		}
		for i := range gradient {
			require.InDelta(t, float64(gradient[i])*limit/before, got[i], limit*1e-5)
		}
	})
}

// Clipping by norm does to each parameter what clipping by the global norm does to all: no norm is above the limit, and
// a smaller one passes bit-identical, whatever the other's is.
func TestClipByNorm_law(t *testing.T) {
	const limit = 0.75
	update := updateOf(t, optim.Clip{Norm: limit})
	rapid.Check(t, func(t *rapid.T) {
		gradient := gradients(t)
		for i := range gradient[matrixSize:] { // the two are of different sizes
			gradient[matrixSize+i] = normal(gradient[matrixSize+i] / 16)
		}
		got := update(t, gradient)
		for _, part := range [][2]int{{0, matrixSize}, {matrixSize, size}} {
			before, after := gradient[part[0]:part[1]], got[part[0]:part[1]]
			norm := normOf(before)
			require.LessOrEqual(t, normOf(after), limit*(1+1e-6))
			for i := range before {
				if norm < limit*(1-1e-6) {
					require.Equal(t, before[i]+0, after[i]+0)
				} else {
					require.InDelta(t, float64(before[i])*limit/norm, after[i], limit*1e-5)
				}
			}
		}
	})
}

// optax clips by the root mean square, clip_by_block_rms: the norm divided by the root of the count. By hand, for a
// gradient of 3 and 4 (norm 5) in a parameter of 24 elements and one of 0.3 and 0.4 (norm 0.5) in one of 4.
func TestClipByNorm_byHand(t *testing.T) {
	gradient := make([]float32, size)
	gradient[0], gradient[1], gradient[matrixSize], gradient[matrixSize+1] = 3, -4, 0.3, 0.4
	want := append([]float32(nil), gradient...)
	want[0], want[1] = 1.5, -2 // of norm 2.5
	require.Equal(t, want, updateOf(t, optim.Clip{Norm: 2.5})(t, gradient))
	want[0], want[1], want[matrixSize], want[matrixSize+1] = 0.15, -0.2, 0.15, 0.2 // of norm 0.25 each
	got := updateOf(t, optim.Clip{Norm: 0.25})(t, gradient)
	require.InDeltaSlice(t, want, got, 1e-7)
}

func TestClip_law(t *testing.T) {
	const limit = 0.25
	update := updateOf(t, optim.Clip{Value: limit})
	rapid.Check(t, func(t *rapid.T) {
		gradient := gradients(t)
		for i, u := range update(t, gradient) {
			require.Equal(t, max(-limit, min(limit, gradient[i]))+0, u+0)
		}
	})
}
