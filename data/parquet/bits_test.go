package parquet

import (
	"encoding/binary"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBitsAt(t *testing.T) {
	b := []byte{0b10110101, 0b11001010, 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	for at := range uint64(len(b)*8 + 10) {
		for _, width := range []uint{1, 3, 8, 17, 64} {
			want := uint64(0)
			for i := range uint64(width) {
				if p := at + i; p/8 < uint64(len(b)) {
					want |= uint64(b[p/8]>>(p%8)&1) << i
				}
			}
			require.Equal(t, want, bitsAt(b, at, width), "%d bits at %d", width, at)
		}
	}
}

// A run of one number, then packed ones: 3 three times, and 0 to 7.
func TestRuns(t *testing.T) {
	r := runs{b: []byte{3 << 1, 3, 1<<1 | 1, 0b10001000, 0b11000110, 0b11111010}, width: 3}
	for i, want := range []uint32{3, 3, 3, 0, 1, 2, 3, 4, 5, 6, 7} {
		v, err := r.next()
		require.NoError(t, err)
		require.Equal(t, want, v, "number %d", i)
	}
	_, err := r.next()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	for want, b := range map[string][]byte{
		"a run of 9 has more than 3 bits": {3 << 1, 9}, "a header of more than 33 bits": {0xff, 0xff, 0xff, 0xff, 0x7f}, "ends too early": {3 << 1},
	} {
		_, err := (&runs{b: b, width: 3}).next()
		require.ErrorContains(t, err, want)
	}
}

func TestDeltas(t *testing.T) {
	zigzag := func(b []byte, v int64) []byte { return binary.AppendVarint(b, v) }
	b := zigzag([]byte{8, 1, 4}, 7) // blocks of 8 in one part, 4 values, the first 7
	b = append(zigzag(b, -2), 2)    // the least difference, and the bits above it
	b = append(b, 0b111001, 0)      // 1, 2, 3
	d, err := newDeltas(b, 4)
	require.NoError(t, err)
	for _, want := range []int64{7, 6, 6, 7} {
		v, err := d.next()
		require.NoError(t, err)
		require.Equal(t, want, v)
	}
	_, err = d.next()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	for want, b := range map[string][]byte{
		"4 differences in a page of 3 values": b, "ends too early": {8}, "in blocks of 7 values and 1 parts": zigzag([]byte{7, 1, 1}, 0),
	} {
		_, err := newDeltas(b, 3)
		require.ErrorContains(t, err, want)
	}
	d, err = newDeltas(append(zigzag(zigzag([]byte{8, 1, 2}, math.MaxInt64), 0), 65), 2)
	require.NoError(t, err)
	_, err = d.next()
	require.NoError(t, err)
	_, err = d.next()
	require.ErrorContains(t, err, "differences of 65 bits, expected at most 64")
}
