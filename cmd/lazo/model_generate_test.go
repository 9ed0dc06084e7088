package main_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

// continuation is that of the library.
func continuation(t *testing.T, dir, prompt string, with func(*pretrained.Generation), adapters ...string) string {
	t.Helper()
	base := must.M1(pretrained.Open(t.Context(), dir))
	network := base.CausalLM()
	for _, folder := range adapters {
		network = network.LoadAdapter(folder)
	}
	state := must.M1(managed.New(strategies.Jit(plugintest.CPU(t)), network.Weights()))
	defer state.Close()
	g := must.M1(network.Generator(state, 1, 64))
	defer g.Close()
	of := must.M1(base.Generation())
	with(&of)
	var all strings.Builder
	for piece, err := range g.Generate(t.Context(), [][]int32{must.M1(of.Tokenizer.Encode(prompt))}, of) {
		require.NoError(t, err)
		all.WriteString(piece.Text)
	}
	return all.String()
}

// The command's texts are the library's, with the flags' settings, and stdin is a prompt.
func TestModelGenerate(t *testing.T) {
	dir := languageModel(t)
	want := continuation(t, dir, "w5 w6", func(of *pretrained.Generation) { of.Most = 6 })
	r := run(t, "model", "generate", dir, "w5 w6", "--tokens", "6")
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, want+"\n", r.stdout)
	require.Equal(t, "lazo: ended after 6 tokens (--tokens is 6), 8 with the prompt, of at most 8\n", r.stderr)
	want = continuation(t, dir, "w5 w6", func(of *pretrained.Generation) {
		of.Most, of.Seed, of.Sampling = 9, 3, text.Sampling{Temperature: 2, TopK: 20, TopP: 0.9}
	})
	r = asked(t, "w5 w6", "model", "generate", dir, "-", "--tokens", "9", "--temperature", "2", "--top-k", "20", "--top-p", "0.9", "--seed", "3")
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, want+"\n", r.stdout)
	third := strings.Fields(want)[2]
	r = asked(t, "w5 w6", "model", "generate", dir, "-", "--tokens", "9", "--temperature", "2", "--top-k", "20", "--top-p", "0.9", "--seed", "3", "--stop", third)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, want[:strings.Index(want, third)]+"\n", r.stdout)
	require.Empty(t, r.stderr)

	for want, args := range map[string][]string{
		"--top-k and --top-p are of draws, and the temperature is 0": {"w5", "--top-k", "3"},
		"--tokens is -1, expected 0 or more":                         {"w5", "--tokens=-1"},
		"prompt 0 has 65 tokens, expected 1 to 64 tokens":            {strings.Repeat("w1 ", 65)},
	} {
		r := run(t, append([]string{"model", "generate", dir}, args...)...)
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stderr, want)
	}
}

// An adapter changes what a language model and a classifier answer.
func TestModel_adapter(t *testing.T) {
	dir, adapter := folderOf(t, "llama", "LlamaForSequenceClassification", "LlamaForCausalLM", `"tie_word_embeddings": false`, `"tie_word_embeddings": true`), t.TempDir()
	config := must.M1(os.ReadFile(folders + "adapter-llama/adapter_config.json"))
	inFolder(t, adapter, "adapter_config.json", strings.Replace(string(config), `"lm_head",`, "", 1))
	tensors, elements, _, err := safetensors.ReadFile(folders+"adapter-llama/adapter_model.safetensors", safetensors.Limits{})
	require.NoError(t, err)
	values := map[string][]byte{}
	for i, tensor := range tensors {
		values[tensor.Name] = elements[i]
	}
	tensors = slices.DeleteFunc(tensors, func(t safetensors.Tensor) bool { return strings.Contains(t.Name, "lm_head") })
	file := must.M1(os.Create(filepath.Join(adapter, "adapter_model.safetensors")))
	out := must.M1(safetensors.NewWriter(file, tensors, nil))
	for _, tensor := range tensors {
		must.M1(out.Write(tensor.Name, values[tensor.Name]))
	}
	require.NoError(t, errors.Join(out.Close(), file.Close()))
	most := func(of *pretrained.Generation) { of.Most = 6 }
	want := continuation(t, dir, "w5 w6", most, adapter)
	require.NotEqual(t, continuation(t, dir, "w5 w6", most), want)
	r := run(t, "model", "generate", dir, "w5 w6", "--tokens", "6", "--adapter", adapter)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, want+"\n", r.stdout)
	r = asked(t, "w5", "model", "chat", dir, "--tokens", "6", "--adapter", adapter)
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, continuation(t, dir, "w7 w5 w8 w9", most, adapter)+"\n", r.stdout)

	dir, adapter = folderOf(t, "bert"), folders+"adapter-bert"
	of := func(command string, flags ...string) string {
		r := asked(t, "w1 w2", append([]string{"model", command, dir, "-"}, flags...)...)
		require.Zero(t, r.code, r.stderr)
		return r.stdout
	}
	require.NotEqual(t, of("predict"), of("predict", "--adapter", adapter))
	r = asked(t, "w1", "model", "predict", dir, "-", "--adapter", folders+"adapter-llama")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "load the adapter "+folders+"adapter-llama")
}

// A turn sees those before it by the template, and a signal ends the wait for the next one.
func TestModelChat(t *testing.T) {
	dir := languageModel(t)
	most := func(of *pretrained.Generation) { of.Most = 3 }
	first := continuation(t, dir, "w7 w1 w8 w7 w5 w8 w9", most)
	second := continuation(t, dir, "w7 w1 w8 w7 w5 w8 w7 "+first+" w8 w7 w6 w8 w9", most)

	c := exec.CommandContext(t.Context(), lazo, "model", "chat", dir, "--system", "w1", "--tokens", "3")
	in, out := must.M1(c.StdinPipe()), bufio.NewReader(must.M1(c.StdoutPipe()))
	require.NoError(t, c.Start())
	for _, turn := range [][2]string{{"w5", first}, {"\nw6", second}} {
		must.M1(in.Write([]byte(turn[0] + "\n")))
		require.Equal(t, turn[1]+"\n", must.M1(out.ReadString('\n')))
	}
	require.NoError(t, c.Process.Signal(syscall.SIGINT))
	_ = c.Wait()
	require.Equal(t, 130, c.ProcessState.ExitCode())

	r := asked(t, "w5\nw6", "model", "chat", dir, "--system", "w1", "--tokens", "3", "--places", "10")
	require.Equal(t, 1, r.code)
	require.Equal(t, first+"\n", r.stdout)
	require.Contains(t, r.stderr, fmt.Sprintf("the conversation has %d tokens, expected at most 10", 12+len(strings.Fields(first))))
	r = asked(t, strings.Repeat("w5 ", 20), "model", "chat", dir, "--places", "8")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "the conversation has 23 tokens, expected at most 8: begin another one, or give --places, up to the model's 64")
	inFolder(t, dir, "tokenizer_config.json", `{}`)
	r = asked(t, "w5", "model", "chat", dir)
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "lazo model generate continues a text without one")
}
