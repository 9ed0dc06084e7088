package pretrained_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/pretrained"
)

func changeConfig(t *testing.T, dir string, change map[string]any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "config.json"))
	require.NoError(t, err)
	fields := map[string]any{}
	require.NoError(t, json.Unmarshal(content, &fields))
	maps.Copy(fields, change)
	content, err = json.Marshal(fields)
	require.NoError(t, err)
	write(t, dir, "config.json", string(content))
}

// blocky is a folder of a kind with rows of 32 and 64 numbers, and 704 tokens.
func blocky(t *testing.T, kind string, change map[string]any) string {
	t.Helper()
	dir := fixtureOf(t, kind).folder(t, "ForCausalLM")
	all, _ := readFile(t, filepath.Join(dir, "model.safetensors"))
	random := rand.New(rand.NewPCG(1, 2))
	sizes := map[int]int{60: 704, 16: 32, 32: 64, 8: 16}
	heads := strings.Contains(kind, "qwen3")
	for name, a := range all {
		for i, n := range a.Dims {
			if a.Dims[i] = sizes[n]; heads && strings.Contains(name, "_norm.") {
				a.Dims[i] = 128
			} else if heads && strings.Contains(name, "self_attn.") && (n == 32 || n == 16 && i == 0 && !strings.Contains(name, "o_proj")) {
				a.Dims[i] = n * 16
			}
		}
		n := 1
		for _, d := range a.Dims {
			n *= d
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(random.NormFloat64() * 0.2)
			if len(a.Dims) == 1 && !strings.HasSuffix(name, ".bias") {
				values[i]++
			}
		}
		all[name] = array{a.Tensor, safetensors.Bytes(values)}
	}
	writeFile(t, filepath.Join(dir, "model.safetensors"), all)
	fields := map[string]any{"hidden_size": 32, "intermediate_size": 64, "vocab_size": 704}
	if fields["head_dim"] = 8; heads {
		fields["head_dim"] = 128 // transformers reads no other width from a file .gguf
	}
	maps.Copy(fields, change)
	changeConfig(t, dir, fields)
	return dir
}

// peerTokenizer writes a tokenizer.json of package text's tests.
func peerTokenizer(t *testing.T, dir, name string) {
	t.Helper()
	f, err := os.Open("../data/text/testdata/kinds.json.gz")
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var all struct{ Files map[string]json.RawMessage }
	require.NoError(t, json.NewDecoder(z).Decode(&all))
	write(t, dir, "tokenizer.json", string(all.Files[name]))
}

// asGGUF are kinds with what makes their settings those of a file .gguf.
var asGGUF = map[string]map[string]any{
	"llama": {}, "qwen3": {}, "qwen2": {"use_sliding_window": false, "layer_types": nil}, "mistral": {"sliding_window": nil, "eos_token_id": []int{2, 3}},
}

func sameTensors(t *testing.T, want, got *pretrained.Base) {
	t.Helper()
	require.Equal(t, want.Tensors(), got.Tensors())
	for name := range want.Tensors() {
		a, err := want.Rows(name)
		require.NoError(t, err)
		b, err := got.Rows(name)
		require.NoError(t, err)
		require.True(t, bytes.Equal(a, b), name)
	}
}

// A folder's model is the same after it was a file .gguf: its tensors bit by bit, its settings, and the token that ends
// texts. Open reads the tensors that Python's gguf wrote of the same folder.
func TestSaveGGUF(t *testing.T) {
	for kind, change := range asGGUF {
		dir := fixtureOf(t, kind).folder(t, "ForCausalLM")
		changeConfig(t, dir, change)
		from := opened(t, dir)
		file := filepath.Join(t.TempDir(), "x.gguf")
		require.NoError(t, from.Network().SaveGGUF(file, nil, "F32"), kind)
		to := opened(t, file)
		sameTensors(t, from, to)
		if kind == "llama" || kind == "qwen3" {
			sameTensors(t, opened(t, filepath.Join("testdata", "gguf", kind+".gguf")), to)
		}
		of, err := to.Generation()
		require.NoError(t, err)
		require.Equal(t, []int32{2}, of.Stop)
		_, err = to.Tokenizer()
		require.ErrorIs(t, err, os.ErrNotExist)
		again := filepath.Join(t.TempDir(), "x.gguf")
		require.NoError(t, to.CausalLM().SaveGGUF(again, nil, "F32"), kind)
		a, err := os.ReadFile(file)
		require.NoError(t, err)
		b, err := os.ReadFile(again)
		require.NoError(t, err)
		require.True(t, bytes.Equal(a, b), kind)
	}
}

// Tensors of two axes have the type, others are float32. A file has the folder's tokenizer.
func TestSaveGGUF_kinds(t *testing.T) {
	tokenizers := map[string]string{"llama": "smollm", "qwen2": "qwen2", "qwen3": "gpt2", "mistral": "llama3"}
	for kind, change := range asGGUF {
		dir := blocky(t, kind, change)
		peerTokenizer(t, dir, tokenizers[kind])
		write(t, dir, "tokenizer_config.json", `{"eos_token": "<|endoftext|>", "chat_template": "{{ 1 }}"}`)
		from := opened(t, dir)
		file := filepath.Join(t.TempDir(), "x.gguf")
		for _, dtype := range []string{"F32", "F16", "BF16", "Q8_0"} {
			require.NoError(t, from.CausalLM().SaveGGUF(file, nil, dtype), kind)
			to := opened(t, file)
			for name, of := range to.Tensors() {
				want, err := from.Rows(name)
				require.NoError(t, err)
				got, err := to.Rows(name)
				require.NoError(t, err)
				x, err := safetensors.Values[float32](want)
				require.NoError(t, err)
				if strings.Contains(name, "norm.") || strings.HasSuffix(name, ".bias") || dtype == "F32" {
					require.Equal(t, "F32", of)
					require.Equal(t, want, got, name)
					continue
				}
				require.Equal(t, strings.Replace(dtype, "Q8_0", "F32", 1), of)
				if dtype != "Q8_0" {
					continue
				}
				y, err := safetensors.Values[float32](got)
				require.NoError(t, err)
				for i := range x {
					require.InDelta(t, x[i], y[i], 0.01, "%s: %d", name, i) // half a step of the largest number
				}
			}
			tokens, err := to.Tokenizer()
			require.NoError(t, err)
			was, err := from.Tokenizer()
			require.NoError(t, err)
			a, err := was.Encode("a text of 123 words")
			require.NoError(t, err)
			b, err := tokens.Encode("a text of 123 words")
			require.NoError(t, err)
			require.Equal(t, a, b)
			require.Equal(t, "{{ 1 }}", tokens.ChatTemplate())
		}
	}
}

// A trained network is written with its additions, as Save does.
func TestSaveGGUF_trained(t *testing.T) {
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16} {
		base := opened(t, blocky(t, "llama", nil))
		base.DType = dtype
		network := base.CausalLM().LoRA(pretrained.LoRA{Rank: 4, Targets: []string{"q_proj", "down_proj"}})
		m, err := flaxlike.New(t.Context(), network, flaxlike.WithLoss(ignoring), flaxlike.WithStrategy(host(t)), flaxlike.WithBatchSize(2), flaxlike.WithOptimizer(optim.New(0.05, optim.Adam{})))
		require.NoError(t, err)
		_, err = m.Fit(t.Context(), counting(t, 2, 6), flaxlike.Fit{Epochs: 2, Output: io.Discard})
		require.NoError(t, err)
		file, dir := filepath.Join(t.TempDir(), "x.gguf"), t.TempDir()
		require.ErrorContains(t, network.SaveGGUF(file, nil, "F32"), "or an addition is not in the folder, expected a model with its values")
		require.NoError(t, network.SaveGGUF(file, m, "F32"))
		require.NoError(t, network.Save(dir, m))
		require.NoError(t, m.Close())
		if dtype == dtypes.Float32 {
			sameTensors(t, opened(t, dir), opened(t, file))
		}
		before, err := base.Rows("model.layers.0.self_attn.q_proj.weight")
		require.NoError(t, err)
		after, err := opened(t, file).Rows("model.layers.0.self_attn.q_proj.weight")
		require.NoError(t, err)
		require.NotEqual(t, before, after)
	}
}

// Settings and tokenizers that a file .gguf cannot have are errors by name, which leave the file that was there.
func TestSaveGGUF_refuses(t *testing.T) {
	folder := func(kind string, change map[string]any) *pretrained.Base {
		dir := fixtureOf(t, kind).folder(t, "ForCausalLM")
		changeConfig(t, dir, change)
		return opened(t, dir)
	}
	file := filepath.Join(t.TempDir(), "x.gguf")
	write(t, filepath.Dir(file), "x.gguf", "old")
	llama := folder("llama", nil)
	words := folder("llama", nil)
	words3 := fixtureOf(t, "llama").folder(t, "ForCausalLM")
	content, err := os.ReadFile("testdata/tokenizer.json")
	require.NoError(t, err)
	write(t, words3, "tokenizer.json", string(content))
	small := fixtureOf(t, "llama").folder(t, "ForCausalLM")
	peerTokenizer(t, small, "gpt2")
	old := fixtureOf(t, "llama").folder(t, "ForCausalLM")
	write(t, old, "vocab.json", "{}")
	for _, row := range []struct {
		network    *pretrained.Network
		kind, want string
	}{
		{llama.CausalLM(), "Q5_K", `the type "Q5_K", expected one of ["BF16" "F16" "F32" "Q8_0"]`},
		{llama.CausalLM(), "Q8_0", `the tensor "model.layers.0.self_attn.q_proj.weight" has rows of 16 numbers, expected a multiple of 32 for Q8_0: use F16`},
		{words.Classifier(3), "F32", "the network is LlamaForSequenceClassification, expected CausalLM of one of"},
		{words.Hidden(), "F32", "the network is LlamaModel, expected CausalLM"},
		{folder("gpt2", nil).CausalLM(), "F32", `the network is GPT2LMHeadModel, expected CausalLM of one of ["llama" "qwen2" "qwen3"]`},
		{folder("mistral", nil).CausalLM(), "F32", "config.json: a file .gguf cannot have the setting sliding_window of this model"},
		{folder("qwen2", nil).CausalLM(), "F32", "the setting sliding_window"},
		{folder("llama3", nil).CausalLM(), "F32", `a file .gguf would have no tensor "model.layers.0.mlp.gate_proj.bias"`},
		{folder("llama", map[string]any{"hidden_act": "gelu"}).CausalLM(), "F32", "the setting hidden_act"},
		{folder("llama", map[string]any{"rope_parameters": map[string]any{"rope_type": "llama3", "rope_theta": 50, "factor": 4, "low_freq_factor": 1, "high_freq_factor": 4,
			"original_max_position_embeddings": 32}}).CausalLM(), "F32", "the setting rope_parameters or rope_scaling"},
		{opened(t, words3).CausalLM(), "F32", "its normalizer, pre_tokenizer and decoder are those of none of the pre-tokenizers"},
		{opened(t, small).CausalLM(), "F32", "the tokenizer has 700 tokens, expected at most the model's 60"},
		{opened(t, old).CausalLM(), "F32", "the folder has vocab.json and no tokenizer.json"},
	} {
		require.ErrorContains(t, row.network.SaveGGUF(file, nil, row.kind), row.want)
	}
	require.ErrorContains(t, llama.CausalLM().SaveGGUF(file+"x", nil, "F32"), "does not end with .gguf")
	require.ErrorContains(t, llama.CausalLM().Save(file, nil), "Network.SaveGGUF writes such a file")
	large := blocky(t, "llama", nil)
	all, _ := readFile(t, filepath.Join(large, "model.safetensors"))
	copy(all["model.layers.1.mlp.down_proj.weight"].data, safetensors.Bytes([]float32{float32(math.NaN())}))
	writeFile(t, filepath.Join(large, "model.safetensors"), all)
	require.ErrorContains(t, opened(t, large).CausalLM().SaveGGUF(file, nil, "Q8_0"), `the tensor "blk.1.ffn_down.weight": the number NaN, expected a finite one`)
	kept, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	content, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "old", string(content))
}

// A file that Python's gguf reads and transformers loads has the same logits and tokens.
func TestInteropGGUF(t *testing.T) {
	interpreter, _ := python(t)
	list := []string{"testdata/ggufs.py", "check"}
	for kind, change := range asGGUF {
		if kind == "mistral" { // transformers does not read the scaling of rotary positions in such files
			change = maps.Clone(change)
			change["rope_parameters"] = map[string]any{"rope_type": "default", "rope_theta": 1e4}
		}
		dir := blocky(t, kind, change)
		peerTokenizer(t, dir, map[string]string{"qwen2": "qwen2", "qwen3": "qwen2", "llama": "llama3", "mistral": "llama3"}[kind])
		from := opened(t, dir)
		for _, dtype := range []string{"F32", "F16", "Q8_0"} {
			file := filepath.Join(t.TempDir(), kind+dtype+".gguf")
			require.NoError(t, from.CausalLM().SaveGGUF(file, nil, dtype))
			base := opened(t, file)
			base.DType = dtypes.Float32
			network := base.CausalLM()
			m, err := flaxlike.New(t.Context(), network, flaxlike.WithStrategy(host(t)))
			require.NoError(t, err)
			of := fixtureOf(t, kind).predicted(t, m, network)
			require.NoError(t, m.Close())
			all, _ := readFile(t, filepath.Join(dir, "model.safetensors"))
			for name, a := range all {
				a.Name = "hf/" + name
				of[a.Name] = a
			}
			s := "A text, of 1234 words. It's <|im_start|> done"
			tokens, err := base.Tokenizer()
			require.NoError(t, err)
			ids, err := tokens.Encode(s)
			require.NoError(t, err)
			of["text"] = array{safetensors.Tensor{Name: "text", DType: safetensors.U8, Dims: []int{len(s)}}, []byte(s)}
			of["ids"] = array{safetensors.Tensor{Name: "ids", DType: safetensors.I32, Dims: []int{len(ids)}}, safetensors.Bytes(ids)}
			writeFile(t, file+".safetensors", of)
			list = append(list, file)
		}
	}
	slices.Sort(list[2:])
	out, err := exec.CommandContext(t.Context(), interpreter, list...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, len(list)-2, strings.Count(string(out), "the largest difference is"))
	require.Equal(t, len(list)-2, strings.Count(string(out), "ids are equal"))
	t.Logf("%s", out)
}
