package pretrained_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A model in a GGUF file has the outputs and gradients of the folder that it was made of: rows of queries and keys are
// in transformers' order again.
func TestGGUF_models(t *testing.T) {
	for _, kind := range []string{"llama", "qwen3"} {
		f := fixtureOf(t, kind)
		require.Positive(t, f.compareOpened(t, "ForCausalLM", filepath.Join("testdata", "gguf", kind+".gguf")))
	}
}
