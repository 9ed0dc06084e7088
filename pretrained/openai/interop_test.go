package openai_test

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/pretrained/openai"
	"github.com/lazo-ml/lazo/strategies"
)

// OpenAI's client chats, streams and embeds, and reads the errors.
func TestInteropOpenAI(t *testing.T) {
	interpreter := os.Getenv("LAZO_PYTHON")
	if interpreter == "" {
		t.Skip("NOT TESTED against the Python package: make interop does that")
	}
	base, err := pretrained.Open(t.Context(), "../testdata/bert")
	require.NoError(t, err)
	m, err := flaxlike.New(t.Context(), base.Embedder(), flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	h, err := openai.NewHandler(map[string]openai.Model{"small": {Tokenizer: tokenizerOf(t), Generator: generatorOf(t, 2, 24), Embedder: m}}, openai.Options{Key: "sesame"})
	require.NoError(t, err)
	s := httptest.NewServer(h)
	defer s.Close()
	out, err := exec.CommandContext(t.Context(), interpreter, "testdata/client_check.py", s.URL).CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}
