package pretrained_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

// A training step moves the running averages as torch does, and they are not trained.
func TestResNet_averages(t *testing.T) {
	f := fixtureOf(t, "resnet")
	network := opened(t, "testdata/resnet").Classifier(0)
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), network.Weights(), managed.WithOptimizer(optim.GoMLX(optimizer.StochasticGradientDescent().Done())))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	step := managed.TrainStep(func(b *managed.Builder) {
		b.Loss("loss", graph.ReduceAllMean(network.Outputs(b.Scope().In("model"), b.Field)["logits"]))
	})
	defer func() { require.NoError(t, step.Close()) }()
	_, _, err = step.Step(t.Context(), state, f.batch(t, "long", "none"))
	require.NoError(t, err)
	compared := 0
	for _, row := range network.Rows() {
		want, there := f.all["trained/"+row.Name]
		if !there {
			continue
		}
		compared++
		got, err := state.Value("/model/" + row.Own)
		require.NoError(t, err)
		if want.DType == safetensors.I64 {
			require.Equal(t, byte(tensors.MustCopyFlatData[float32](got)[0]), want.data[0])
			continue
		}
		require.InDeltaSlice(t, want.floats(t), tensors.MustCopyFlatData[float32](got), 1e-5, row.Name)
	}
	require.Equal(t, 3*12, compared)
	m, err := flaxlike.New(t.Context(), network, flaxlike.WithStrategy(host(t)))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	require.NoError(t, m.Init(t.Context(), f.batch(t, "long", "none")))
	dir := t.TempDir()
	require.NoError(t, network.Save(dir, m))
	was, _ := readFile(t, "testdata/resnet/model.safetensors")
	is, _ := readFile(t, filepath.Join(dir, "model.safetensors"))
	require.Equal(t, was, is)
}

// A number of batches that is not one is an error.
func TestResNet_hostileCounts(t *testing.T) {
	const name = "resnet.embedder.embedder.normalization.num_batches_tracked"
	for want, change := range map[string]func(a *array){
		`"` + name + `" has the shape [1], expected []`:                                        func(a *array) { a.Dims = []int{1} },
		`"` + name + `" is of U64, expected F32, F16 or BF16, and I64 for a number of batches`: func(a *array) { a.DType = safetensors.U64 },
		`tensor "` + name + `": -1 batches, expected at least 0`:                               func(a *array) { a.data = bytes.Repeat([]byte{0xff}, 8) },
	} {
		dir := folderOf(t, "resnet", nil)
		all, _ := readFile(t, filepath.Join(dir, "model.safetensors"))
		a := all[name]
		change(&a)
		all[name] = a
		writeFile(t, filepath.Join(dir, "model.safetensors"), all)
		base, err := pretrained.Open(t.Context(), dir)
		if err == nil {
			m, failed := flaxlike.New(t.Context(), base.Hidden(), flaxlike.WithStrategy(host(t)))
			require.NoError(t, failed)
			err = m.Init(t.Context(), fixtureOf(t, "resnet").batch(t, "hole", "none"))
			require.NoError(t, m.Close())
		}
		require.ErrorContains(t, err, want)
	}
}

//lazo:norace
func TestResNet_numbers(t *testing.T) { numbers(t, "resnet", "resnet-basic") }
