package pretrained_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/pretrained"
)

// Folders that lazo saved are loaded by transformers and sentence-transformers without missing or further weights, with
// the same outputs.
func TestInteropSave(t *testing.T) {
	interpreter, _ := python(t)
	folders := []string{"testdata/models.py", "check"}
	for _, kind := range kinds {
		f := fixtureOf(t, kind)
		for _, task := range append(sortedKeys(tasks), "Sentences", "New") {
			if _, head := tasks[task]; head && len(f.under(task+"/")) == 0 ||
				task == "Sentences" && len(f.under("ForCausalLM/"))+len(f.under(imageClasses+"/")) > 0 ||
				(!head || task == "Sentences") && (len(f.under(seq2seqLM+"/")) > 0 || kind == "clip") {
				continue // the architecture has no such head
			}
			from := f.folder(t, strings.NewReplacer("Sentences", "Model", "New", "Model").Replace(task))
			if task == "Sentences" {
				data, err := os.ReadFile(filepath.Join("testdata", "tokenizer.json"))
				require.NoError(t, err)
				write(t, from, "tokenizer.json", string(data))
				write(t, from, "tokenizer_config.json", `{"tokenizer_class": "PreTrainedTokenizerFast"}`)
			}
			make, head := tasks[task]
			switch {
			case task == "Sentences":
				make = (*pretrained.Base).Embedder
			case !head:
				make = func(b *pretrained.Base) *pretrained.Network { return b.Classifier(7) }
			}
			network := make(opened(t, from))
			m, err := flaxlike.New(t.Context(), network, flaxlike.WithStrategy(host(t)))
			require.NoError(t, err)
			dir := filepath.Join(t.TempDir(), kind+task)
			batch := f.predicted(t, m, network)
			require.NoError(t, network.Save(dir, m))
			writeFile(t, filepath.Join(dir, "outputs.safetensors"), batch)
			require.NoError(t, m.Close())
			folders = append(folders, dir)
		}
	}
	out, err := exec.CommandContext(t.Context(), interpreter, folders...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, len(folders)-2, strings.Count(string(out), "the largest difference is"))
	t.Logf("%s", out)
}

// A trained model is saved as transformers has it: the same names, and numbers that Open reads again.
func TestSave(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			f := fixtureOf(t, kind)
			if strings.HasPrefix(kind, "clip") {
				t.Skip("TestCLIP has it")
			}
			from := filepath.Join("testdata", kind)
			made, places := tasks["ForSequenceClassification"], 0
			if strings.HasPrefix(kind, "t5") || kind == "whisper" {
				made, places = tasks[seq2seqLM], 7
			}
			network := made(opened(t, from))
			if places == 0 {
				require.Equal(t, []string{"red", "green", "blue"}, network.Labels)
			}
			m, err := flaxlike.New(t.Context(), network, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithStrategy(host(t)), flaxlike.WithBatchSize(3))
			require.NoError(t, err)
			defer func() { require.NoError(t, m.Close()) }()
			set := labelled(t, f, places)
			_, err = m.Fit(t.Context(), set, flaxlike.Fit{Output: io.Discard})
			require.NoError(t, err)
			dir := filepath.Join(t.TempDir(), "new", "folder")
			require.NoError(t, network.Save(dir, m))

			was, _ := readFile(t, filepath.Join(from, "model.safetensors"))
			is, metadata := readFile(t, filepath.Join(dir, "model.safetensors"))
			require.Equal(t, map[string]string{"format": "pt"}, metadata)
			require.Equal(t, sortedKeys(was), sortedKeys(is))
			for name := range was {
				require.Equal(t, was[name].Tensor, is[name].Tensor)
				if strings.Contains(name, "classifier") {
					require.NotEqual(t, was[name].data, is[name].data)
				}
			}
			if fixed := "model.encoder.embed_positions.weight"; kind == "whisper" {
				require.Equal(t, was[fixed].data, is[fixed].data)
			}
			want, err := m.Predict(t.Context(), set)
			require.NoError(t, err)
			got := outputsOf(t, made(opened(t, dir)), f, "long")["logits"]
			trained, err := want.Output()
			require.NoError(t, err)
			require.Len(t, got, len(trained.Flat.([]float32)))
			require.InDeltaSlice(t, widened(trained.Flat.([]float32)), got, 1e-5)

			// Without training, the saved numbers equal those read.
			require.NoError(t, made(opened(t, dir)).Save(dir, m))
			var config map[string]any
			text, err := os.ReadFile(filepath.Join(dir, "config.json"))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &config))
			var before map[string]any
			text, err = os.ReadFile(filepath.Join(from, "config.json"))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &before))
			require.Equal(t, before, config)
			left, err := filepath.Glob(filepath.Join(dir, ".lazo-*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
