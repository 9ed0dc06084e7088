package pretrained_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/pretrained"
)

const prepared = `{"do_resize": true, "size": {"height": 8, "width": 12}, "do_rescale": true, "rescale_factor": 0.00392156862745098, "do_normalize": true,
	"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.4]}`

// images has bytes as the long batch, and the same as floating-point numbers prepared by hand.
func images(t *testing.T, f fixture) (raw, floats fixture) {
	t.Helper()
	const at = "in/long/pixel_values"
	of := f.all[at]
	random := rand.New(rand.NewPCG(1, 1))
	data := make([]byte, len(of.data)/4)
	numbers := make([]float32, len(data))
	mean, deviation := []float64{0.4, 0.5, 0.6}, []float64{0.2, 0.3, 0.4}
	for i := range data {
		data[i] = byte(random.IntN(256))
		numbers[i] = float32((float64(data[i])/255 - mean[i%3]) / deviation[i%3])
	}
	with := func(t safetensors.DType, data []byte) fixture {
		return fixture{f.kind, map[string]array{at: {safetensors.Tensor{Name: at, DType: t, Dims: of.Dims}, data}}, nil}
	}
	return with(safetensors.U8, data), with(safetensors.F32, safetensors.Bytes(numbers))
}

// Images of uint8 are prepared as preprocessor_config.json says, which Save keeps.
func TestImages(t *testing.T) {
	raw, floats := images(t, fixtureOf(t, "vit"))
	dir := folderOf(t, "vit", nil)
	write(t, dir, "preprocessor_config.json", prepared)
	network := opened(t, dir).Classifier(0)
	require.InDeltaSlice(t, outputsOf(t, network, floats, "long")["logits"], outputsOf(t, network, raw, "long")["logits"], 1e-5)
	m, err := flaxlike.New(t.Context(), network, flaxlike.WithStrategy(host(t)))
	require.NoError(t, err)
	require.NoError(t, m.Init(t.Context(), raw.batch(t, "long", "none")))
	saved := t.TempDir()
	require.NoError(t, network.Save(saved, m))
	require.NoError(t, m.Close())
	text, err := os.ReadFile(filepath.Join(saved, "preprocessor_config.json"))
	require.NoError(t, err)
	require.Equal(t, prepared, string(text))
}

// Images of another size, and settings that are missing or not implemented, are errors.
func TestImages_mistakes(t *testing.T) {
	f := fixtureOf(t, "vit")
	raw, floats := images(t, f)
	narrow := floats.all["in/long/pixel_values"]
	narrow.Dims = []int{3, 12, 8, 3}
	integers := raw.all["in/long/pixel_values"]
	integers.Dims, integers.DType = []int{3, 8, 3, 3}, safetensors.I32
	for _, row := range []struct {
		config string
		input  array
		want   string
	}{
		{prepared, narrow, `the input "pixel_values" is (Float32)[3, 12, 8, 3], expected [batch, height, width, channels] with the height 8, the width 12 (0 for all) and 3 channels`},
		{prepared, integers, "with the height 8, the width 12"},
		{"", raw.all["in/long/pixel_values"], "images of uint8 cannot be prepared: the folder has no preprocessor_config.json"},
		{`{"image_mean": [0, 0, 0]}`, raw.all["in/long/pixel_values"], `preprocessor_config.json: image_std is "", expected a number for each of 3 channels`},
		{`{"image_mean": [0, 0, 0], "image_std": [1, 0, 1]}`, raw.all["in/long/pixel_values"], `image_std is "[1, 0, 1]", expected numbers from 1e-9 to 1e9`},
		{`{"image_mean": [0, 0, 0], "image_std": [1, -1, 1]}`, raw.all["in/long/pixel_values"], `expected numbers from 1e-9 to 1e9`},
		{`{"image_mean": [0, 1e300, 0], "image_std": [1, 1, 1]}`, raw.all["in/long/pixel_values"], `expected numbers from -1e9 to 1e9`},
		{`{"image_mean": [null, null, null], "image_std": [1, 1, 1]}`, raw.all["in/long/pixel_values"], `image_mean is "[null, null, null]", expected a number for each`},
		{`{"do_normalize": false, "size": {"HEIGHT": 4}}`, raw.all["in/long/pixel_values"], "expected numbers from 1 to 1073741824 as height, width"},
		{`{"do_normalize": false, "size": {"height": null}}`, raw.all["in/long/pixel_values"], `size is "{\"height\": null}", expected`},
		{`{"do_normalize": false, "do_flip_channel_order": true}`, raw.all["in/long/pixel_values"], "do_flip_channel_order is"},
		{`{"do_normalize": false, "size": 8}`, raw.all["in/long/pixel_values"], "preprocessor_config.json has images of 8 by 8"},
		{`{"do_normalize": false, "size": 8, "crop_size": {"height": 6, "width": 4}}`, raw.all["in/long/pixel_values"], "preprocessor_config.json has images of 6 by 4"},
	} {
		dir := folderOf(t, "vit", nil)
		if row.config != "" {
			write(t, dir, "preprocessor_config.json", row.config)
		}
		m, err := flaxlike.New(t.Context(), opened(t, dir).Classifier(0), flaxlike.WithStrategy(host(t)))
		require.NoError(t, err)
		batch := fixture{f.kind, map[string]array{"in/long/pixel_values": row.input}, nil}.batch(t, "long", "none")
		require.ErrorContains(t, m.Init(t.Context(), batch), row.want)
		require.NoError(t, m.Close())
	}
	_, err := flaxlike.New(t.Context(), opened(t, "testdata/vit").Embedder(), flaxlike.WithStrategy(host(t)))
	require.ErrorContains(t, err, "it is a network of images, expected one of texts")
	_, err = flaxlike.New(t.Context(), opened(t, "testdata/t5").Embedder(), flaxlike.WithStrategy(host(t)))
	require.ErrorContains(t, err, "it is a network of pairs of texts, expected one of texts")
}

// LoRA trains ViT and merges into its files. Adapters would have names that peft does not find.
func TestImages_adapter(t *testing.T) {
	f := fixtureOf(t, "vit")
	network := opened(t, "testdata/vit").Classifier(0).LoRA(pretrained.LoRA{Rank: 2, Targets: []string{"query", "intermediate.dense"}})
	m, err := flaxlike.New(t.Context(), network, flaxlike.WithStrategy(host(t)))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	require.NoError(t, m.Init(t.Context(), f.batch(t, "hole", "none")))
	require.NoError(t, network.Save(t.TempDir(), m))
	require.ErrorContains(t, network.SaveAdapter(t.TempDir(), m), "adapters of ViT are not implemented, as modules and files of transformers have different names: use Network.Save")
	_, err = flaxlike.New(t.Context(), opened(t, "testdata/vit").Classifier(0).LoadAdapter("testdata/adapter-bert"), flaxlike.WithStrategy(host(t)))
	require.ErrorContains(t, err, "adapters of ViT are not implemented")
}
