package hlo_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/hlo"
)

// The state determines Philox's numbers. The pure-Go backend has another generator, so the test checks laws.
func TestRandomBits(t *testing.T) {
	d := open(t)
	kinds := slices.Concat(realTypes, boolType)
	compile := func() compute.Executable {
		b := programOf(hlo.New("bits", d.compile))
		var states, all []compute.Value
		for i, kind := range kinds {
			state := must1(t)(b.Parameter(fmt.Sprintf("state %d", i), shapes.Make(dtypes.Uint64, 3), nil))
			next, bits, err := b.RNGBitGenerator(state, shapes.Make(kind, 1000))
			require.NoError(t, err)
			states, all = append(states, next), append(all, bits)
		}
		exec, err := b.Finish(append(states, all...))
		require.NoError(t, err)
		t.Cleanup(exec.Finalize)
		return exec
	}
	draw := func(exec compute.Executable, states []array) (next, bits []array) {
		got, err := execute(d, exec, 1, states...)
		require.NoError(t, err)
		return got[:len(kinds)], got[len(kinds):]
	}
	state := of([]int{3}, uint64(1), 2, 3)
	exec, from := compile(), slices.Repeat([]array{state}, len(kinds))
	next, bits := draw(exec, from)
	again, same := draw(compile(), from)
	_, other := draw(exec, next)
	for i, kind := range kinds {
		t.Run(strings.ToLower(kind.String()), func(t *testing.T) {
			drawn := memory(bits[i].flat)
			require.Equal(t, drawn, memory(same[i].flat))
			require.Equal(t, next[i], again[i])
			require.NotEqual(t, state.flat, next[i].flat)
			require.NotEqual(t, drawn, memory(other[i].flat))
			ones := 0
			for _, b := range drawn {
				for ; b != 0; b &= b - 1 {
					ones++
				}
			}
			total := 8 * len(drawn)
			if kind == dtypes.Bool {
				total /= 8
			}
			share := float64(ones) / float64(total)
			require.InDelta(t, 0.5, share, 0.06, "share of bits that are 1")
		})
	}
}

// The form for CPUs draws the same as XLA's generator, also where the counter's first half overflows.
func TestRandomBits_asXLA(t *testing.T) {
	d := open(t)
	for _, kind := range []dtypes.DType{dtypes.Uint32, dtypes.Int32, dtypes.Float32} {
		for _, from := range [][]uint64{{0x0123456789abcdef, 2, 3}, {1, math.MaxUint64 - 700, 1<<32 - 1}, {math.MaxUint64, math.MaxUint64, math.MaxUint64}} {
			var all [2][]array
			for i, cpu := range []bool{false, true} {
				b := programOf(hlo.New("bits", d.compile).ForCPU(cpu))
				state := must1(t)(b.Parameter("state", shapes.Make(dtypes.Uint64, 3), nil))
				next, bits, err := b.RNGBitGenerator(state, shapes.Make(kind, 6, 1000))
				require.NoError(t, err)
				exec, err := b.Finish([]compute.Value{next, bits})
				require.NoError(t, err)
				t.Cleanup(exec.Finalize)
				require.Equal(t, cpu, !strings.Contains(d.last.Text(), "rng_bit_generator"))
				all[i], err = execute(d, exec, 1, of([]int{3}, from...))
				require.NoError(t, err)
			}
			require.Equal(t, all[0][0], all[1][0], "the next state after %v", from)
			require.True(t, bytes.Equal(memory(all[0][1].flat), memory(all[1][1].flat)), "%s from %v", kind, from)
		}
	}
}
