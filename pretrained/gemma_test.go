package pretrained_test

import (
	"testing"
)

// Older files have the rates and windows of Gemma 3 in other fields.
func TestOpen_olderGemma(t *testing.T) {
	f := fixtureOf(t, "gemma3")
	base := opened(t, folderOf(t, "gemma3", map[string]any{"rope_parameters": nil, "layer_types": nil, "sliding_window_pattern": 2,
		"rope_theta": 1e3, "rope_local_base_freq": 50, "rope_scaling": map[string]any{"type": "linear", "factor": 4}}))
	const at = "ForSequenceClassification/long/logits"
	f.near(t, at, outputsOf(t, base.Classifier(0), f, "long")["logits"], f.all[at])
}

//lazo:norace
func TestGemma_numbers(t *testing.T) { numbers(t, "gemma2", "gemma3") }
