package pretrained_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

// adapters are folders of testdata/adapters.py.
var adapters = map[string]struct{ kind, task string }{"adapter-llama": {"llama", "ForCausalLM"}, "adapter-bert": {"bert", "ForSequenceClassification"}}

// adapted returns the network of an adapter's model, and what peft computed.
func adapted(t *testing.T, name string) (*pretrained.Network, fixture) {
	t.Helper()
	of := adapters[name]
	f, base := fixtureOf(t, name), fixtureOf(t, of.kind)
	for key, a := range base.all {
		if strings.HasPrefix(key, "in/") || strings.HasPrefix(key, "random/") {
			f.all[key] = a
		}
	}
	return tasks[of.task](opened(t, base.folder(t, of.task))), f
}

// Outputs and gradients of peft's adapters differ from torch's in float64 at most 10 times as much as torch's own in
// float32. As many parameters are trained as in peft.
//
//lazo:norace
func TestAdapter(t *testing.T) {
	for name, of := range adapters {
		t.Run(name, func(t *testing.T) {
			network, f := adapted(t, name)
			network = network.LoadAdapter(filepath.Join("testdata", name))
			require.Equal(t, len(f.all)-len(f.under("in/"))-len(f.under("random/")), f.compareNetwork(t, of.task, network, network.AdapterRows()))

			_, metadata := readFile(t, filepath.Join("testdata", name, "expected.safetensors"))
			state := stateOf(t, network, f, of.task)
			var trained int
			require.NoError(t, json.Unmarshal([]byte(metadata["trained"]), &trained))
			require.Equal(t, trained, state.Parameters())
		})
	}
}

// stateOf makes a state with the network's variables.
func stateOf(t *testing.T, network *pretrained.Network, f fixture, task string) *managed.State {
	t.Helper()
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), network.Weights(), managed.WithOptimizer(optim.New(0.1)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, state.Close()) })
	step := managed.TestStep(func(b *managed.Builder) {
		for name, y := range network.Outputs(b.Scope().In("model"), b.Field) {
			b.Output(name, y)
		}
	})
	_, _, err = step.Step(t.Context(), state, f.batch(t, "long", task))
	require.NoError(t, err)
	require.NoError(t, step.Close())
	return state
}

// A loaded adapter is saved with the same tensors and numbers, and merged it has the same outputs.
func TestSaveAdapter(t *testing.T) {
	for name, of := range adapters {
		network, f := adapted(t, name)
		network = network.LoadAdapter(filepath.Join("testdata", name))
		state := stateOf(t, network, f, of.task)
		dir := filepath.Join(t.TempDir(), "new", "folder")
		require.NoError(t, network.SaveAdapter(dir, state))
		was, _ := readFile(t, filepath.Join("testdata", name, "adapter_model.safetensors"))
		is, metadata := readFile(t, filepath.Join(dir, "adapter_model.safetensors"))
		require.Equal(t, map[string]string{"format": "pt"}, metadata)
		require.Equal(t, sortedKeys(was), sortedKeys(is))
		for name := range was {
			require.Equal(t, was[name], is[name])
		}
		again, _ := adapted(t, name)
		want := outputsOf(t, network, f, "long")["logits"]
		require.Equal(t, want, outputsOf(t, again.LoadAdapter(dir), f, "long")["logits"])

		dir = t.TempDir()
		require.NoError(t, network.Save(dir, state))
		merged := tasks[of.task](opened(t, dir))
		require.Empty(t, merged.Drawn())
		require.InDeltaSlice(t, want, outputsOf(t, merged, f, "long")["logits"], 2e-5)
	}
}

// Fields that would change numbers, and tensors that do not fit, are errors.
func TestLoadAdapter_hostile(t *testing.T) {
	many := func(n, length int) map[string]any {
		all := map[string]any{}
		for i := range n {
			all[fmt.Sprintf("%0*d", length, i)] = 3
		}
		return all
	}
	const from = "testdata/adapter-bert"
	whole, _ := readFile(t, filepath.Join(from, "adapter_model.safetensors"))
	text, err := os.ReadFile(filepath.Join(from, "adapter_config.json"))
	require.NoError(t, err)
	const a, head = "base_model.model.bert.pooler.dense.lora_A.weight", "base_model.model.classifier.bias"
	for _, row := range []struct {
		field string
		value any
		drop  string
		add   string
		want  string
	}{
		{"use_dora", true, "", "", `adapter_config.json: use_dora is "true", expected false: other values are not implemented`},
		{"bias", "all", "", "", `bias is "\"all\"", expected "none"`},
		{"lora_bias", true, "", "", "lora_bias is"},
		{"layers_to_transform", []int{0}, "", "", "layers_to_transform is"},
		{"trainable_token_indices", []int{7}, "", "", "trainable_token_indices is"},
		{"init_lora_weights", "pissa", "", "", `init_lora_weights is "\"pissa\"", expected true`},
		{"a_field_of_tomorrow", 1, "", "", "a_field_of_tomorrow is"},
		{"peft_type", "LOHA", "", "", `peft_type is "\"LOHA\"", expected "LORA": other kinds of adapters are not implemented`},
		{"r", 0, "", "", `r is "0", expected a whole number from 1`},
		{"r", 1 << 29, "", "", `the rank of "bert.encoder.layer.0.attention.self.query" is 536870912, expected at most 16`},
		{"r", 4, "", "", `the tensor "base_model.model.bert.encoder.layer.0.attention.self.query.lora_A.weight" has the shape [3 16], expected [4 16] by adapter_config.json`},
		{"lora_alpha", "x", "", "", "lora_alpha is"},
		{"rank_pattern", map[string]any{"query": 2.5}, "", "", "is 2.5, expected a whole number"},
		{"rank_pattern", map[string]any{"query": 3, "self.query": 2}, "", "", "rank_pattern has several numbers for"},
		{"rank_pattern", map[string]any{"(": 3}, "", "", "rank_pattern is"},
		{"alpha_pattern", map[string]any{"query": -3}, "", "", "alpha_pattern is"},
		{"target_modules", `(?<=x)query`, "", "", `expected a list of names, or a regular expression: it has "(?<"`},
		{"target_modules", "query)|(key", "", "", "unexpected )"},
		{"target_modules", `.*(q{1000}){1000}`, "", "", `it has "{": counts, flags, classes by name`},
		{"alpha_pattern", map[string]any{"[[:alpha:]]": 3}, "", "", `it has "[:": counts, flags`},
		{"rank_pattern", map[string]any{`query(?i)\W`: 3}, "", "", `it has "(?i"`},
		{"rank_pattern", map[string]any{`query\pL`: 3}, "", "", `it has "\\p"`},
		{"rank_pattern", map[string]any{"quéry": 3}, "", "", "and other characters than ASCII"},
		{"rank_pattern", map[string]any{strings.Repeat("q", 4001): 3}, "", "", "it has 4001 bytes, expected at most 4000"},
		{"rank_pattern", many(20, 3500), "", "", "by modules' names of 65536 bytes and regular expressions of 4000 bytes in all"},
		{"rank_pattern", map[string]any{strings.Repeat("a?", 1100): 3, strings.Repeat("b?", 1100): 3}, "", "", "and regular expressions of 4000 bytes in all"},
		{"rank_pattern", many(1001, 5), "", "", "expected an object of at most 1000 numbers above 0"},
		{"target_modules", strings.Split(strings.Repeat("query,", 1001), ","), "", "", "at most 1000 names, of 65536 bytes in all"},
		{"modules_to_save", []string{strings.Repeat("x", 65537)}, "", "", "at most 1000 names, of 65536 bytes in all"},
		{"target_modules", "query", "", "", `the targets "\"query\"" match no dense layer, expected ends of ["dense" "key" "query" "value"]`},
		{"target_modules", 3, "", "", "target_modules is"},
		{"modules_to_save", []string{""}, "", "", "modules_to_save is"},
		{"modules_to_save", nil, "", "", `has the tensor "base_model.model.classifier.bias", which is not of a module of target_modules and modules_to_save in this network`},
		{"", nil, a, "", `the folder has no tensor "` + a + `"`},
		{"", nil, head, "", `the folder has no tensor "` + head + `"`},
		{"", nil, "", "base_model.model.bert.x", `adapter_model.safetensors has the tensor "base_model.model.bert.x", which is not of a module`},
	} {
		fields := map[string]any{}
		require.NoError(t, json.Unmarshal(text, &fields))
		if row.field != "" {
			fields[row.field] = row.value
		}
		all := maps.Clone(whole)
		delete(all, row.drop)
		if row.add != "" {
			x := all[head]
			x.Name = row.add
			all[row.add] = x
		}
		dir := t.TempDir()
		changed, err := json.Marshal(fields)
		require.NoError(t, err)
		write(t, dir, "adapter_config.json", string(changed))
		writeFile(t, filepath.Join(dir, "adapter_model.safetensors"), all)
		err = loading(t, opened(t, "testdata/bert").Classifier(3).LoadAdapter(dir))
		require.ErrorContains(t, err, row.want)
		require.ErrorContains(t, err, "pretrained: load the adapter "+dir)
	}
	fields := map[string]any{}
	require.NoError(t, json.Unmarshal(text, &fields))
	fields["rank_pattern"] = many(1000, 64)
	dir := t.TempDir()
	network := opened(t, "testdata/bert").Classifier(3)
	large, err := json.Marshal(fields)
	require.NoError(t, err)
	write(t, dir, "adapter_config.json", string(large))
	writeFile(t, filepath.Join(dir, "adapter_model.safetensors"), whole)
	require.NoError(t, loading(t, network.LoadAdapter(dir)), "a name for each module of a large model")
	dir = t.TempDir()
	require.ErrorContains(t, loading(t, network.LoadAdapter(dir)), "expected adapter_config.json and adapter_model.safetensors, as by save_pretrained of peft")
	write(t, dir, "adapter_config.json", "{")
	require.ErrorContains(t, loading(t, network.LoadAdapter(dir)), "adapter_config.json: unexpected end of JSON input")
	write(t, dir, "adapter_config.json", strings.Repeat(" ", 1<<20)+string(text))
	require.ErrorContains(t, loading(t, network.LoadAdapter(dir)), "adapter_config.json")
	write(t, dir, "adapter_config.json", string(text))
	write(t, dir, "adapter_model.safetensors", "short")
	require.ErrorContains(t, loading(t, network.LoadAdapter(dir)), "adapter_model.safetensors")
	require.ErrorContains(t, loading(t, opened(t, "testdata/bert").TokenClassifier(3).LoadAdapter("testdata/adapter-llama")), "match no dense layer")
}

// A config's dropout applies in training alone.
func TestLoadAdapter_dropout(t *testing.T) {
	text, err := os.ReadFile("testdata/adapter-llama/adapter_config.json")
	require.NoError(t, err)
	additions, err := os.ReadFile("testdata/adapter-llama/adapter_model.safetensors")
	require.NoError(t, err)
	for rate, differs := range map[string]bool{"0.0": false, "0.5": true} {
		dir := t.TempDir()
		write(t, dir, "adapter_config.json", strings.Replace(string(text), `"lora_dropout": 0.0`, `"lora_dropout": `+rate, 1))
		write(t, dir, "adapter_model.safetensors", string(additions))
		m := fitted(t, causal(t, "llama").LoadAdapter(dir))
		batch := first(t, counting(t, 4, 5))
		_, tested, err := m.TestStep(t.Context(), batch)
		require.NoError(t, err)
		_, again, err := m.TestStep(t.Context(), batch)
		require.NoError(t, err)
		_, trained, err := m.TrainStep(t.Context(), batch)
		require.NoError(t, err)
		require.Equal(t, loss(t, tested), loss(t, again))
		if differs {
			require.Greater(t, math.Abs(loss(t, tested)-loss(t, trained)), 0.01)
		} else {
			require.InDelta(t, loss(t, tested), loss(t, trained), 1e-5)
		}
	}
}

func loss(t *testing.T, logs loop.Logs) float64 {
	t.Helper()
	x, err := logs.Float("loss")
	require.NoError(t, err)
	return x
}

// A custom head is trained, and left out of the adapter, as Save leaves it out.
func TestSaveAdapter_ownHead(t *testing.T) {
	base := opened(t, "testdata/roberta")
	network := base.Head(func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
		return map[string]*graph.Node{"logits": nn.Dense{Units: 3}.Apply(s.In("tags"), hidden)}
	}).LoRA(pretrained.LoRA{Rank: 2, Targets: []string{"layer.1.attention.self.query"}})
	state := stateOf(t, network, fixtureOf(t, "roberta"), "none")
	require.Equal(t, 2*16+2*16+16*3+3, state.Parameters())
	dir := t.TempDir()
	require.NoError(t, network.SaveAdapter(dir, state))
	saved, _ := readFile(t, filepath.Join(dir, "adapter_model.safetensors"))
	require.Equal(t, []string{"base_model.model.encoder.layer.1.attention.self.query.lora_A.weight", "base_model.model.encoder.layer.1.attention.self.query.lora_B.weight"}, sortedKeys(saved))
	require.ErrorContains(t, network.SaveAdapter(dir, stateOf(t, base.Hidden(), fixtureOf(t, "roberta"), "none")), "lora_a/kernel")
}

// loading is the error of a state with the network.
func loading(t *testing.T, network *pretrained.Network) error {
	t.Helper()
	state, err := managed.New(host(t), network.Weights())
	if err == nil {
		require.NoError(t, state.Close())
	}
	return err
}

// A generator continues texts with the additions, as the merged network.
func TestGenerate_adapter(t *testing.T) {
	network, f := adapted(t, "adapter-llama")
	network = network.LoadAdapter("testdata/adapter-llama")
	state := stateOf(t, network, f, "ForCausalLM")
	dir := t.TempDir()
	require.NoError(t, network.Save(dir, state))
	merged := opened(t, dir).CausalLM()
	var all [][]int32
	for _, n := range []*pretrained.Network{network, merged} {
		state, err := managed.New(strategies.Jit(plugintest.CPU(t)), n.Weights())
		require.NoError(t, err)
		g, err := n.Generator(state, 1, 12)
		require.NoError(t, err)
		var ids []int32
		for piece, err := range g.Generate(t.Context(), [][]int32{{7, 8, 9}}, pretrained.Generation{}) {
			require.NoError(t, err)
			ids = append(ids, piece.ID)
		}
		all = append(all, ids)
		require.NoError(t, g.Close())
		require.NoError(t, state.Close())
	}
	require.Equal(t, all[0], all[1])
}
