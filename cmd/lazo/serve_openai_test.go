package main_test

import (
	"bufio"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/pretrained"
)

// A folder of the hub is served to OpenAI's clients with a key, under its name in the hub's cache, until a signal.
func TestServe_pretrained(t *testing.T) {
	from := languageModel(t)
	dir := filepath.Join(t.TempDir(), "models--org--small", "snapshots", "0123")
	require.NoError(t, copied(dir, from))
	t.Setenv("LAZO_TEST_KEY", "secret")
	c := exec.CommandContext(t.Context(), lazo, "serve", dir, "--listen", "127.0.0.1:0", "--key", "LAZO_TEST_KEY", "--drain", "0s")
	var stderr strings.Builder
	c.Stderr = &stderr
	out := must.M1(c.StdoutPipe())
	require.NoError(t, c.Start())
	address := strings.TrimSpace(must.M1(bufio.NewReader(out).ReadString('\n')))
	require.True(t, strings.HasSuffix(address, "/v1"), address+stderr.String())
	ask := func(key string) (int, string) {
		q := must.M1(http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/completions", strings.NewReader(`{"model": "org/small", "prompt": "w5 w6", "max_tokens": 4}`)))
		q.Header.Set("Authorization", "Bearer "+key)
		r := must.M1(http.DefaultClient.Do(q))
		defer r.Body.Close()
		return r.StatusCode, string(must.M1(io.ReadAll(r.Body)))
	}
	status, answer := ask("other")
	require.Equal(t, 401, status, answer)
	status, answer = ask("secret")
	require.Equal(t, 200, status, answer)
	require.Contains(t, answer, `"`+continuation(t, dir, "w5 w6", func(of *pretrained.Generation) { of.Most = 4 })+`"`)
	require.NoError(t, c.Process.Signal(syscall.SIGTERM))
	_ = c.Wait()
	require.Equal(t, 143, c.ProcessState.ExitCode(), stderr.String())

	for want, args := range map[string][]string{
		"--reload is for saved models, and this is a model of the hub":                                      {dir, "--reload", "1s"},
		"--places is for a model of the hub, a folder with config.json or a file .gguf":                     {savedModel, "--places", "3"},
		"--key is LAZO_TEST_NO_KEY, an environment variable that is empty, expected one with the key":       {dir, "--key", "LAZO_TEST_NO_KEY"},
		`has the heads ["BertForSequenceClassification"], expected one that ends with ForCausalLM, or a fo`: {folderOf(t, "bert")},
	} {
		r := run(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stderr, want)
	}
}
