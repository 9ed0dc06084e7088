package pretrained_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/pretrained"
)

func writeIndex(t *testing.T, dir string, list map[string]string) {
	t.Helper()
	text, err := json.Marshal(map[string]any{"weight_map": list})
	require.NoError(t, err)
	write(t, dir, "model.safetensors.index.json", string(text))
}

// A folder with shards gives the same numbers. Shards outside the folder, and tensors that are missing, doubled or not
// listed, are errors.
func TestOpen_shards(t *testing.T) {
	f := fixtureOf(t, "bert")
	dir, list := parts(t)
	writeIndex(t, dir, list)
	base, err := pretrained.Open(t.Context(), dir)
	require.NoError(t, err)
	f.near(t, "ForSequenceClassification/long/logits", outputsOf(t, base.Classifier(0), f, "long")["logits"], f.all["ForSequenceClassification/long/logits"])

	const words, first = "bert.embeddings.word_embeddings.weight", "model-00001-of-00002.safetensors"
	for want, change := range map[string]func(dir string, list map[string]string){
		`is in "../model.safetensors", expected a file of the folder`:                           func(_ string, list map[string]string) { list[words] = "../model.safetensors" },
		`is in "/etc/passwd", expected a file of the folder`:                                    func(_ string, list map[string]string) { list[words] = "/etc/passwd" },
		`is in "..", expected a file of the folder`:                                             func(_ string, list map[string]string) { list[words] = ".." },
		`other.safetensors: no such file`:                                                       func(_ string, list map[string]string) { list["new"] = "other.safetensors" },
		`lists the tensor "new" in model-00001-of-00002.safetensors, which does not contain it`: func(_ string, list map[string]string) { list["new"] = first },
		`lists in "other.safetensors", expected each`:                                           func(_ string, list map[string]string) { list[words] = "other.safetensors" },
		`which model.safetensors.index.json lists in ""`:                                        func(_ string, list map[string]string) { delete(list, words) },
		`expected each tensor in one file`: func(dir string, _ map[string]string) {
			all, _ := readFile(t, "testdata/bert/model.safetensors")
			writeFile(t, filepath.Join(dir, first), all)
		},
		`model.safetensors.index.json lists 0 files`: func(_ string, list map[string]string) { clear(list) },
	} {
		dir, list := parts(t)
		change(dir, list)
		writeIndex(t, dir, list)
		_, err := pretrained.Open(t.Context(), dir)
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "model.safetensors.index.json")))
	_, err = pretrained.Open(t.Context(), dir)
	require.ErrorContains(t, err, "the folder has neither model.safetensors nor model.safetensors.index.json")
}
