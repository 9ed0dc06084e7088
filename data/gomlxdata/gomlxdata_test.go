package gomlxdata_test

import (
	"errors"
	"iter"
	"testing"

	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"
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

// plain is a batch as GoMLX has it: how its set deals out and where it lies in memory is no part of that.
func plain(b data.Batch) data.Batch {
	return data.Batch{Fields: b.Fields, Size: b.Size, Epoch: b.Epoch, At: b.At, Resident: b.Resident}
}

func TestThereAndBackIsTheSame(t *testing.T) {
	source := numbers(t).Batches(2, data.Kept).All()
	there := gomlxdata.To("numbers", source, []string{"x", "even"}, []string{"y"})
	require.Equal(t, "numbers", there.Name())
	back := gomlxdata.From(there, []string{"x", "even"}, []string{"y"})
	want := collect(t, source)
	for i := range want {
		want[i] = plain(want[i])
		f := want[i].Fields
		want[i].Fields = []data.Field{f[0], f[2], f[1]}
	}
	require.Equal(t, want, collect(t, back))
	for range back {
		break
	}
	require.Equal(t, want, collect(t, back), "each pass is a new one")

	none, err := data.New(data.X([]float32{}, 5, 0, 3))
	require.NoError(t, err)
	want = collect(t, none.Batches(5).All())
	want[0] = plain(want[0])
	require.Equal(t, want, collect(t, gomlxdata.From(gomlxdata.To("none", none.Batches(5).All(), []string{"x"}, nil), []string{"x"}, nil)))
}

// kept is a dataset of some batches, then an error; it keeps its tensors for inspection.
type kept struct {
	n     int
	given []*tensors.Tensor
	ended int
}

var errBroken = errors.New("broken")

func (k *kept) Name() string { return "b" }
func (k *kept) Iter() iter.Seq2[train.Batch, error] {
	return func(yield func(train.Batch, error) bool) {
		defer func() { k.ended++ }()
		for range k.n {
			x := tensors.FromValue([]float32{1, 2})
			k.given = append(k.given, x)
			if !yield(train.Batch{Inputs: []*tensors.Tensor{x}}, nil) {
				return
			}
		}
		yield(train.Batch{}, errBroken)
	}
}

func (k *kept) free(t *testing.T) {
	for _, x := range k.given {
		require.Error(t, x.CheckValid(), "it was not freed")
	}
}

func TestErrors(t *testing.T) {
	last := func(s iter.Seq2[data.Batch, error]) (n int, err error) {
		for _, err = range s {
			n++
		}
		return n, err
	}
	ds := &kept{n: 1}
	n, err := last(gomlxdata.From(ds, []string{"x"}, nil))
	require.Equal(t, 2, n)
	require.ErrorIs(t, err, errBroken)
	require.EqualError(t, err, `gomlxdata: dataset "b": broken`)
	_, err = last(gomlxdata.From(ds, []string{"x"}, []string{"y"}))
	require.EqualError(t, err, `gomlxdata: dataset "b": got 1 inputs and 0 labels, expected ["x"] and ["y"]`)
	_, err = last(gomlxdata.From(nil, nil, nil))
	require.ErrorContains(t, err, "no dataset")
	for range gomlxdata.From(ds, []string{"x"}, nil) {
		break
	}
	require.Equal(t, 3, ds.ended, "a pass that is left ends")
	require.Len(t, ds.given, 3)
	ds.free(t)

	for name, row := range map[string]struct {
		to   train.Dataset
		want string
	}{
		"field":  {gomlxdata.To("d", numbers(t).Batches(2).All(), []string{"x"}, []string{"z"}), `gomlxdata: dataset "d": data: the batch has no field "z"; there are "x", "y", "even"`},
		"source": {gomlxdata.To("d", nil, nil, nil), `gomlxdata: dataset "d": there is no source (nil)`},
		"error":  {gomlxdata.To("d", numbers(t).Batches(9).All(), nil, nil), "one full batch"},
	} {
		n := 0
		for b, err := range row.to.Iter() {
			n++
			require.ErrorContains(t, err, row.want, name)
			require.Empty(t, b, name)
		}
		require.Equal(t, 1, n, name)
	}
}

// GoMLX's own trainer reads a set of ours, in epochs and in steps: no pass is left open, and an error of the source
// ends it.
func TestTo_inGoMLXsTrainer(t *testing.T) {
	backend, err := gobackend.New("ops_sequential")
	require.NoError(t, err)
	defer backend.Finalize()
	var x, y []float32
	for i := range 16 {
		x, y = append(x, float32(i)/16), append(y, 2*float32(i)/16+1)
	}
	set, err := data.New(data.X(x, 16, 1), data.Y(y, 16, 1))
	require.NoError(t, err)
	trainer := train.NewTrainer(backend, model.NewStore(), func(scope *model.Scope, x *graph.Node) *graph.Node { return layers.Dense(scope, x, true, 1) },
		loss.MeanSquaredError, optimizer.StochasticGradientDescent().WithDecay(false).WithLearningRate(0.2).Done(), nil, nil)
	passes, open := 0, 0
	source := func(yield func(data.Batch, error) bool) {
		passes++
		open++
		defer func() { open-- }()
		set.Batches(4).All()(yield)
	}
	ds := gomlxdata.To("line", source, []string{"x"}, []string{"y"})
	metrics, err := train.NewLoop(trainer).RunEpochs(ds, 100)
	require.NoError(t, err)
	require.Less(t, tensors.ToScalar[float32](metrics[0]), float32(1e-3))
	require.Equal(t, 100, passes)
	_, err = train.NewLoop(trainer).RunSteps(ds, 3)
	require.NoError(t, err)
	require.Zero(t, open, "a pass was left open")

	_, err = train.NewLoop(trainer).RunEpochs(gomlxdata.To("line", func(yield func(data.Batch, error) bool) {
		for b := range set.Batches(4).All() {
			_ = yield(b, nil) && yield(data.Batch{}, errBroken)
			return
		}
	}, []string{"x"}, []string{"y"}), 1)
	require.ErrorIs(t, err, errBroken)
	require.ErrorContains(t, err, `gomlxdata: dataset "line": broken`)
}
