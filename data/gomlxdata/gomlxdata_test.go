package gomlxdata_test

import (
	"errors"
	"io"
	"iter"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/tensors"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/gomlxdata"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func numbers(t *testing.T) *data.Set {
	set, err := data.New(data.X([]float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 5, 2), data.Y([]int64{0, 1, 2, 3, 4}, 5), data.Named("even", []bool{true, false, true, false, true}, 5))
	require.NoError(t, err)
	return set
}

func collect(t *testing.T, s iter.Seq2[data.Batch, error]) []data.Batch {
	var all []data.Batch
	for b, err := range s {
		require.NoError(t, err)
		all = append(all, b)
	}
	return all
}

func TestThereAndBackIsTheSame(t *testing.T) {
	source := numbers(t).Batches(2, data.KeepRemainder())
	there := gomlxdata.To("numbers", source, []string{"x", "even"}, []string{"y"})
	require.Equal(t, "numbers", there.Name())
	back := gomlxdata.From(there, []string{"x", "even"}, []string{"y"})
	want := collect(t, source)
	for i := range want {
		f := want[i].Fields
		want[i].Fields = []data.Field{f[0], f[2], f[1]}
	}
	require.Equal(t, want, collect(t, back))
	require.Equal(t, want, collect(t, back), "a pass begins with Reset")
	for range back {
		break
	}
	_, _, _, err := there.Yield()
	require.NoError(t, err, "it stands where it was left")
	there.Close()
	_, _, _, err = there.Yield()
	require.Equal(t, io.EOF, err)
}

type broken struct{ calls int }

var errBroken = errors.New("broken")

func (b *broken) Name() string { return "b" }
func (b *broken) Reset()       {}
func (b *broken) Yield() (any, []*tensors.Tensor, []*tensors.Tensor, error) {
	if b.calls++; b.calls > 1 {
		return nil, nil, nil, errBroken
	}
	return nil, []*tensors.Tensor{tensors.FromValue([]float32{1, 2})}, nil, nil
}

func TestErrors(t *testing.T) {
	last := func(s iter.Seq2[data.Batch, error]) (n int, err error) {
		for _, err = range s {
			n++
		}
		return n, err
	}
	n, err := last(gomlxdata.From(&broken{}, []string{"x"}, nil))
	require.Equal(t, 2, n)
	require.ErrorIs(t, err, errBroken)
	require.EqualError(t, err, `gomlxdata: dataset "b": broken`)
	_, err = last(gomlxdata.From(&broken{}, []string{"x"}, []string{"y"}))
	require.EqualError(t, err, `gomlxdata: dataset "b": 1 inputs and 0 labels, expected ["x"] and ["y"]`)
	_, err = last(gomlxdata.From(nil, nil, nil))
	require.ErrorContains(t, err, "no dataset")

	for name, row := range map[string]struct {
		to   *gomlxdata.Dataset
		want string
	}{
		"field":  {gomlxdata.To("d", numbers(t).Batches(2), []string{"z"}, nil), `gomlxdata: dataset "d": data: the batch has no field "z"; there are "x", "y", "even"`},
		"source": {gomlxdata.To("d", nil, nil, nil), "gomlxdata: yield: there is no source (nil)"},
		"error":  {gomlxdata.To("d", numbers(t).Batches(9), nil, nil), "one full batch"},
	} {
		_, _, _, err := row.to.Yield()
		require.ErrorContains(t, err, row.want, name)
		row.to.Close()
	}
}
