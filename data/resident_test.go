package data

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/internal/datatest"
)

// A resident set deals out the same examples in the same order, and OnHost gathers them.
func TestResident_sameBatches(t *testing.T) {
	x := make([]float32, 30)
	for i := range x {
		x[i] = float32(i)
	}
	set, err := New(X(x, 15, 2), Named(Mask, []bool{14: true}, 15))
	require.NoError(t, err)
	for _, row := range []struct {
		position, epochs int64
		options          []Option
	}{{0, 1, nil}, {0, 1, []Option{Kept}}, {0, 3, []Option{Shuffle(2)}}, {2, 1, []Option{Shuffle(2)}}} {
		var want []Batch
		for b, err := range set.Batches(4, row.options...).sequence(row.position, row.epochs) {
			require.NoError(t, err)
			want = append(want, b)
		}
		n := 0
		for b, err := range OnDevice(set).Batches(4, row.options...).sequence(row.position, row.epochs) {
			require.NoError(t, err)
			require.Len(t, b.Fields, 2, "the places and the mask")
			host, err := b.OnHost()
			require.NoError(t, err)
			require.Equal(t, want[n].alone(), host)
			y, err := b.Field("x")
			require.NoError(t, err)
			require.Equal(t, want[n].Fields[0].Array, y)
			alone, err := b.gathered("x")
			require.NoError(t, err)
			require.Equal(t, set.fields[1], alone.Fields[1], "the mask is not gathered")
			padded, err := Pad(b, 6)
			require.NoError(t, err)
			padded, err = padded.OnHost()
			require.NoError(t, err)
			other, err := Pad(want[n], 6)
			require.NoError(t, err)
			require.Equal(t, other, padded)
			n++
		}
		require.Len(t, want, n)
	}
}

func TestResident_refuses(t *testing.T) {
	set, err := New(Named(Rows, []int32{1, 2}, 2))
	require.NoError(t, err)
	for _, err := range OnDevice(set).Batches(1).All() {
		require.ErrorContains(t, err, `the set has a field "rows": give it another name`)
	}
	other, err := New(X([]float32{1, 2}, 2))
	require.NoError(t, err)
	for b, err := range OnDevice(other).Batches(3).All() {
		require.ErrorContains(t, err, "batches of 3 from 2 examples", b)
	}
	require.ErrorContains(t, datatest.First((&Resident{other, nil}).Batches(1).All()), "use the one that data.OnDevice returns")
	_, err = Batch{Resident: &Resident{}}.Field("x")
	require.ErrorContains(t, err, "use the one that data.OnDevice returns")
	wrong := Batch{Fields: []Field{Named(Rows, []int32{5}, 1)}, Size: 1, Resident: OnDevice(other)}
	_, err = wrong.Field("x")
	require.ErrorContains(t, err, "example 0 is 5 of a set of 2")
}
