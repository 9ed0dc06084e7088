package images

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func pictures(t require.TestingT, n, h, w int) Batch {
	x := make([]float32, n*h*w*2)
	for i := range x {
		x[i] = float32(i + 1)
	}
	s, err := New(X(x, n, h, w, 2))
	require.NoError(t, err)
	return Batch{Fields: s.Fields(), Size: n}
}

// What each change may give, of an image of one row 1 2 3.
func TestAugmentations(t *testing.T) {
	for _, row := range []struct {
		name   string
		change Augmentation
		h, w   int
		want   [][]uint8
	}{
		{"flip horizontal", FlipHorizontal(), 1, 3, [][]uint8{{1, 2, 3}, {3, 2, 1}}},
		{"flip vertical", FlipVertical(), 3, 1, [][]uint8{{1, 2, 3}, {3, 2, 1}}},
		{"flip vertical of a row", FlipVertical(), 1, 3, [][]uint8{{1, 2, 3}}},
		{"crop", RandomCrop(1, 2, 0), 1, 3, [][]uint8{{1, 2}, {2, 3}}},
		{"crop with padding", RandomCrop(3, 5, 1), 1, 3, [][]uint8{{0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0, 0}}},
		{"crop to the size", RandomCrop(1, 3, 1), 1, 3, [][]uint8{{0, 0, 0}, {0, 1, 2}, {1, 2, 3}, {2, 3, 0}}},
		{"shift", RandomShift(0, 1), 1, 3, [][]uint8{{1, 1, 2}, {1, 2, 3}, {2, 3, 3}}},
		{"no shift", RandomShift(0, 0), 1, 3, [][]uint8{{1, 2, 3}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := Batch{Size: 1, Fields: []Field{X([]uint8{1, 2, 3}, 1, row.h, row.w, 1)}}
			seen := map[string]bool{}
			for at := range 200 {
				b.At = at
				got, err := Augment(1, "x", row.change)(b)
				require.NoError(t, err)
				require.NoError(t, got.Fields[0].Array.Check())
				flat := got.Fields[0].Array.Flat.([]uint8)
				require.Contains(t, row.want, flat)
				seen[string(flat)] = true
			}
			require.Len(t, seen, len(row.want), "each of them comes")
			require.Equal(t, []uint8{1, 2, 3}, b.Fields[0].Array.Flat, "the batch stays as it is")
		})
	}
}

// The draw of an example depends on the seed, the epoch and its place, not on the batch it came in.
func TestAugment_law(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, h, w := rapid.IntRange(1, 6).Draw(t, "n"), rapid.IntRange(1, 5).Draw(t, "h"), rapid.IntRange(1, 5).Draw(t, "w")
		b := pictures(t, n, h, w)
		b.Epoch, b.At = rapid.IntRange(0, 3).Draw(t, "epoch"), rapid.IntRange(0, 100).Draw(t, "at")
		f := Augment(rapid.Uint64().Draw(t, "seed"), "x", FlipVertical(), RandomCrop(h+1, w, 1), RandomShift(1, 1), FlipHorizontal())
		whole, err := f(b)
		require.NoError(t, err)
		require.Equal(t, []int{n, h + 1, w, 2}, whole.Fields[0].Array.Dims)
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		for i, part := range []Batch{b.slice(0, cut, n), b.slice(cut, n, n)} {
			got, err := f(part)
			require.NoError(t, err)
			want := whole.Fields[0].Array.Slice([]int{0, cut}[i], []int{cut, n}[i])
			require.Equal(t, want.Dims, got.Fields[0].Array.Dims)
			require.ElementsMatch(t, want.Flat, got.Fields[0].Array.Flat)
			require.Equal(t, want, got.Fields[0].Array)
		}
		values := whole.Fields[0].Array.Flat.([]float32)
		for i := 0; i < len(values); i += 2 { // channels stay together
			require.True(t, values[i] == 0 && values[i+1] == 0 || values[i+1] == values[i]+1 && int(values[i])%2 == 1)
		}
	})
	same := 0
	a := pictures(t, 64, 4, 4)
	f := Augment(1, "x", FlipHorizontal())
	one, err := f(a)
	require.NoError(t, err)
	a.Epoch = 1
	two, err := f(a)
	require.NoError(t, err)
	x, y := one.Fields[0].Array.Flat.([]float32), two.Fields[0].Array.Flat.([]float32)
	for i := range 64 {
		if x[i*32] == y[i*32] {
			same++
		}
	}
	require.InDelta(t, 32, same, 20, "another epoch draws anew")
}

func TestAugmentRefuses(t *testing.T) {
	b := pictures(t, 2, 3, 4)
	for want, f := range map[string]func(Batch) (Batch, error){
		`data: augment: the batch has no field "z"; there are ["x"]`:                                        Augment(1, "z"),
		`field "x": random crop: 5 x 1 pixels out of an image of 3 x 4 with a border of 0: expected`:        Augment(1, "x", RandomCrop(5, 1, 0)),
		`field "x": random crop: 0 x 1 pixels`:                                                              Augment(1, "x", RandomCrop(0, 1, 0)),
		`random crop: 1 x 1 pixels out of an image of 3 x 4 with a border of 9223372036854775807: expected`: Augment(1, "x", RandomCrop(1, 1, 1<<63-1)),
		`field "x": random shift: shifts of up to 4 rows and 0 columns in an image of 3 x 4`:                Augment(1, "x", RandomShift(4, 0)),
		"the Augmentation is the zero value":                                                                Augment(1, "x", Augmentation{}),
	} {
		_, err := f(b)
		require.ErrorContains(t, err, want)
	}
	_, err := Augment(1, "x")(Batch{Fields: []Field{X([]float32{1}, 1)}, Size: 1})
	require.ErrorContains(t, err, `field "x": dims [1], expected images [n, height, width, channels]`)
}
