package flaxlike_test

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/images"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// pictures is a folder of dark and of light images, some of each in grey.
func pictures(t *testing.T, n int) *data.Set {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		class, grey := "dark", uint8(20+i)
		if i%2 == 1 {
			class, grey = "light", uint8(200+i)
		}
		require.NoError(t, os.MkdirAll(filepath.Join(dir, class), 0o755))
		file, err := os.Create(filepath.Join(dir, class, fmt.Sprint(i, ".png")))
		require.NoError(t, err)
		picture := image.NewGray(image.Rect(0, 0, 4, 4))
		for k := range picture.Pix {
			picture.Pix[k] = color.Gray{Y: grey}.Y
		}
		require.NoError(t, png.Encode(file, picture))
		require.NoError(t, file.Close())
	}
	folder, err := images.Open(dir, images.Format{Height: 4, Width: 4, Channels: 1})
	require.NoError(t, err)
	return folder
}

// From a folder of images into Fit, Evaluate and Predict, with augmentation. A resumed run ends bit-identical.
func TestFit_imagesAndAugment(t *testing.T) {
	folder := pictures(t, 40)
	require.Equal(t, []string{"dark", "light"}, folder.Classes("y"))
	training, test, err := folder.Split(0.8, 1, data.Stratified("y"))
	require.NoError(t, err)
	network := nn.Sequential{nn.Flatten{}, nn.Dense{Units: 2}}
	model := func() *flaxlike.Model {
		return newModel(t, network, flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithLearningRate(0.05), flaxlike.WithBatchSize(8))
	}
	var augmented atomic.Int64
	fit := func(m *flaxlike.Model, epochs int, into *checkpoint.Folder) {
		_, err := m.Fit(t.Context(), training, quiet(flaxlike.Fit{Epochs: epochs, Validation: test, Callbacks: []loop.Option{resume(into)}, Augment: []func(data.Batch) (data.Batch, error){
			images.Augment(1, "x", images.RandomBrightness(0.05), images.RandomRotation(20), images.FlipHorizontal()),
			func(b data.Batch) (data.Batch, error) { augmented.Add(int64(b.Size)); return b, nil },
		}}))
		require.NoError(t, err)
	}
	whole := model()
	fit(whole, 6, nil)
	require.GreaterOrEqual(t, augmented.Load(), int64(6*training.Len()), "each batch that is trained on, and a few ahead")
	figures, err := whole.Evaluate(t.Context(), test)
	require.NoError(t, err)
	require.EqualValues(t, 1, figures["accuracy"])
	outputs, err := whole.Predict(t.Context(), test)
	require.NoError(t, err)
	require.Equal(t, []int{test.Len(), 2}, output(t, outputs).Dims)

	saves := openFolder(t, t.TempDir(), checkpoint.Options{})
	fit(model(), 2, saves)
	again := model()
	fit(again, 6, saves)
	require.Equal(t, values(t, whole), values(t, again))
	plain := model()
	_, err = plain.Fit(t.Context(), training, quiet(flaxlike.Fit{Epochs: 6}))
	require.NoError(t, err)
	require.NotEqual(t, values(t, whole), values(t, plain), "without augmentation it is another model")
}

// A function that changes its batch in place does not change the set, whatever the order.
func TestFit_augmentInPlace(t *testing.T) {
	zero := func(b data.Batch) (data.Batch, error) {
		x, err := b.Field("x")
		clear(x.Flat.([]float32))
		return b, err
	}
	for _, fit := range []flaxlike.Fit{{InOrder: true}, {}, {OverfitBatches: 1}} {
		set := sorted(t, 64)
		fit.Augment = []func(data.Batch) (data.Batch, error){zero}
		_, err := newModel(t, nn.Dense{Units: 3}, flaxlike.WithLoss(sparse)).Fit(t.Context(), set, quiet(fit))
		require.NoError(t, err)
		require.Equal(t, sorted(t, 64).Fields(), set.Fields())
	}
}

// Batches that come one by one go through the functions, too, in their order, and have their places.
func TestFit_augmentBatches(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	note := func(name string) func(data.Batch) (data.Batch, error) {
		return func(b data.Batch) (data.Batch, error) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprint(name, " ", b.At))
			return b, nil
		}
	}
	set := sorted(t, 64)
	_, err := newModel(t, nn.Dense{Units: 3}, flaxlike.WithLoss(sparse)).FitBatches(t.Context(), loop.Data[data.Batch](set.Batches(32).All()), quiet(flaxlike.Fit{
		StepsPerEpoch: 2, Augment: []func(data.Batch) (data.Batch, error){note("one"), note("two")}}))
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"one 0", "two 0", "one 32", "two 32"}, seen)
	for _, at := range []string{"0", "32"} {
		require.Less(t, slices.Index(seen, "one "+at), slices.Index(seen, "two "+at))
	}
}
