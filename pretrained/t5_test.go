package pretrained_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/pretrained"
)

// Embeddings that are also the output's are not trained themselves: peft would train a copy.
func TestT5_tied(t *testing.T) {
	of := pretrained.LoRA{Rank: 2, Targets: []string{"q"}, Modules: []string{"shared"}}
	_, err := flaxlike.New(t.Context(), opened(t, "testdata/t5").Seq2SeqLM().LoRA(of), flaxlike.WithStrategy(host(t)))
	require.ErrorContains(t, err, `the module "shared" is trained itself, and it is also the output's`)
	m, err := flaxlike.New(t.Context(), opened(t, "testdata/t5-gated").Seq2SeqLM().LoRA(of), flaxlike.WithStrategy(host(t)))
	require.NoError(t, err)
	require.NoError(t, m.Close())
}

//lazo:norace
func TestT5_numbers(t *testing.T) { numbers(t, "t5", "t5-gated") }
