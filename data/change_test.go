package data_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
)

func TestSetMap(t *testing.T) {
	set, err := data.New(data.Named("id", []int32{7, 8}, 2), data.Named("kind", []string{"a", "b"}, 2), data.X([]float32{1, 2}, 2))
	require.NoError(t, err)
	double := func(b data.Batch) (data.Batch, error) {
		x, err := b.Field("x")
		if err != nil {
			return data.Batch{}, err
		}
		b.Fields = append(b.Fields[:len(b.Fields):len(b.Fields)], data.Named("double", []float32{2 * x.Flat.([]float32)[0], 2 * x.Flat.([]float32)[1]}, 2))
		return b, nil
	}
	got, err := set.Map(data.Drop("id"), data.Rename("kind", "y"), double, data.Select("double", "y"))
	require.NoError(t, err)
	want := []data.Field{data.Named("double", []float32{2, 4}, 2), data.Y([]string{"a", "b"}, 2)}
	require.Equal(t, want, got.Fields())
	require.Len(t, set.Fields(), 3)

	// A stream of one batch is the set; one of a set on the device, too.
	batch, err := data.Peek(data.Map(set.Batches(2).All(), data.Select("x")))
	require.NoError(t, err)
	require.Equal(t, []data.Field{data.X([]float32{1, 2}, 2)}, batch.Fields)
	numbers, err := set.Map(data.Drop("kind"))
	require.NoError(t, err)
	batch, err = data.Peek(data.Map(data.OnDevice(numbers).Batches(2).All(), data.Rename("x", "z")))
	require.NoError(t, err)
	require.Equal(t, []data.Field{data.Named("id", []int32{7, 8}, 2), data.Named("z", []float32{1, 2}, 2)}, batch.Fields)

	for want, change := range map[string]func(data.Batch) (data.Batch, error){
		`data: drop ["z"]: the batch has no field "z"; there are "id", "kind", "x"`:                       data.Drop("z"),
		`data: drop ["id" "kind" "x"]: no field is left`:                                                  data.Drop("id", "kind", "x"),
		`data: select ["x" "z"]: the batch has no field "z"; there are "id", "kind", "x"`:                 data.Select("x", "z"),
		`data: select: fields 1 and 2 of 2 have the same name "x": give each its own name (data.Named)`:   data.Select("x", "x"),
		`data: select: no field is named`:                                                                 data.Select(),
		`data: rename ["x" "id"]: to "id": expected a name that is not empty and that no other field has`: data.Rename("x", "id"),
		`data: rename ["z" "y"]: the batch has no field "z"; there are "id", "kind", "x"`:                 data.Rename("z", "y"),
		`data: map a set: change 1 of 1 is nil`:                                                           nil,
	} {
		_, err := set.Map(change)
		require.EqualError(t, err, want)
	}
	mapped, err := set.MapBatches(data.Drop("id"))
	require.NoError(t, err)
	_, err = mapped.Map(data.Drop("id"))
	require.ErrorContains(t, err, "data: map a set: the set has functions of MapBatches, whose outputs it does not know")
	_, err = set.Field("z")
	require.EqualError(t, err, `data: the set has no field "z"; there are "id", "kind", "x"`)
}

// Texts are dealt out, gathered and put together as numbers are; a step does not take them.
func TestTexts(t *testing.T) {
	set, err := data.New(data.Named("kind", []string{"a", "b", "c"}, 3))
	require.NoError(t, err)
	collected, err := data.Collect(data.Rebatch(set.Batches(1, data.Shuffle(1)).All(), 2, data.Kept), 3)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a", "b", "c"}, field(t, collected, "kind").Flat)
	rare, err := set.Where(func(b data.Batch) bool { return b.Fields[0].Array.Flat.([]string)[0] != "b" })
	require.NoError(t, err)
	require.Equal(t, data.Array{Flat: []string{"a", "c"}, Dims: []int{2}}, field(t, rare, "kind"))
	batch, err := data.Peek(set.Batches(2).All())
	require.NoError(t, err)
	refused := `field "kind": it holds texts, and a step takes numbers: convert them by a tables.Preparation, or remove the field by data.Drop`
	require.EqualError(t, batch.Check(), "data: "+refused)
	require.ErrorContains(t, field(t, set, "kind").Check(), "data: it holds texts")
	_, err = data.Peek(data.OnDevice(set).Batches(2).All())
	require.EqualError(t, err, "data: on device: "+refused)
	_, err = data.OneHot(field(t, set, "kind"), 3)
	require.ErrorContains(t, err, "labels are string")
}

func TestOnField(t *testing.T) {
	b := data.Batch{Size: 1, Fields: []data.Field{data.X([]float32{1}, 1), data.Y([]int32{1}, 1)}}
	hot := data.OnField("y", func(a data.Array) (data.Array, error) { return data.OneHot(a, 2) })
	got, err := hot(b)
	require.NoError(t, err)
	require.Equal(t, []float32{0, 1}, got.Fields[1].Array.Flat)
	require.Equal(t, []int32{1}, b.Fields[1].Array.Flat)
	_, err = hot(data.Batch{})
	require.ErrorContains(t, err, `no field "y"`)
	_, err = data.OnField("y", nil)(b)
	require.EqualError(t, err, "data: on field: there is no function (nil)")

	// A batch of a set on the device is gathered.
	set, err := data.New(data.X([]float32{1, 2}, 2), data.Y([]int32{1, 0}, 2))
	require.NoError(t, err)
	got, err = data.Peek(data.Map(data.OnDevice(set).Batches(2).All(), hot))
	require.NoError(t, err)
	require.Nil(t, got.Resident)
	require.Equal(t, []float32{0, 1, 1, 0}, got.Fields[1].Array.Flat)
}
