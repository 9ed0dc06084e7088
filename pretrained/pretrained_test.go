package pretrained_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

// array is a tensor of a file.
type array struct {
	safetensors.Tensor
	data []byte
}

func (a array) floats(t *testing.T) []float32 {
	t.Helper()
	values, err := safetensors.Values[float32](a.data)
	require.NoError(t, err)
	return values
}

func readFile(t *testing.T, path string) (all map[string]array, metadata map[string]string) {
	t.Helper()
	list, elements, metadata, err := safetensors.ReadFile(path, safetensors.Limits{})
	require.NoError(t, err)
	all = map[string]array{}
	for i, of := range list {
		all[of.Name] = array{of, elements[i]}
	}
	return all, metadata
}

func writeFile(t *testing.T, path string, all map[string]array) {
	t.Helper()
	var list []safetensors.Tensor
	for _, a := range all {
		list = append(list, a.Tensor)
	}
	safetensors.Sort(list)
	f, err := os.Create(path)
	require.NoError(t, err)
	w, err := safetensors.NewWriter(f, list, nil)
	require.NoError(t, err)
	for _, of := range list {
		_, err := w.Write(of.Name, all[of.Name].data)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
}

// fixture is a folder of testdata with what transformers computed.
type fixture struct {
	kind   string
	all    map[string]array
	errors map[string]float64 // of torch in float32
}

func fixtureOf(t *testing.T, kind string) fixture {
	t.Helper()
	f := fixture{kind: kind}
	var metadata map[string]string
	f.all, metadata = readFile(t, filepath.Join("testdata", kind, "expected.safetensors"))
	require.NoError(t, json.Unmarshal([]byte(metadata["errors"]), &f.errors))
	return f
}

// under returns the tensors whose names begin with a prefix, without it.
func (f fixture) under(prefix string) map[string]array {
	found := map[string]array{}
	for name, a := range f.all {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			found[rest] = a
		}
	}
	return found
}

// folder returns a folder with a model of a task: the body of testdata's with the head of the fixture.
func (f fixture) folder(t *testing.T, task string) string {
	t.Helper()
	from := filepath.Join("testdata", f.kind)
	if task == "ForSequenceClassification" || task == imageClasses || task == seq2seqLM || strings.HasPrefix(f.kind, "clip") {
		return from
	}
	all, _ := readFile(t, filepath.Join(from, "model.safetensors"))
	for name := range all {
		if strings.HasPrefix(name, "classifier") || strings.HasPrefix(name, "pre_classifier") || strings.HasPrefix(name, "score") || name == "lm_head.weight" && f.kind == "t5-gated" {
			delete(all, name)
		}
	}
	for name, a := range f.under("head/" + task + "/") {
		a.Name = name
		all[name] = a
	}
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "model.safetensors"), all)
	text, err := os.ReadFile(filepath.Join(from, "config.json"))
	require.NoError(t, err)
	class := strings.NewReplacer("GPT2ForCausalLM", "GPT2LMHeadModel", "Gemma3TextForCausalLM", "Gemma3ForCausalLM").
		Replace(strings.NewReplacer("ForSequenceClassification", task, imageClasses, task, seq2seqLM, task).Replace(string(text)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(class), 0o600))
	return dir
}

func (f fixture) batch(t *testing.T, name, task string) data.Batch {
	t.Helper()
	var fields []data.Field
	of := f.under("in/" + name + "/")
	for _, at := range sortedKeys(of) {
		switch of[at].DType {
		case safetensors.F32:
			fields = append(fields, data.Named(at, of[at].floats(t), of[at].Dims...))
			continue
		case safetensors.U8:
			fields = append(fields, data.Named(at, of[at].data, of[at].Dims...))
			continue
		}
		ids, err := safetensors.Values[int32](of[at].data)
		require.NoError(t, err)
		fields = append(fields, data.Named(at, ids, of[at].Dims...))
	}
	if name == "long" {
		of = f.under("random/" + task + "/")
		for _, at := range sortedKeys(of) {
			whole := make([]float32, len(of[at].data))
			for i, b := range of[at].data {
				whole[i] = float32(int8(b))
			}
			fields = append(fields, data.Named("random/"+at, whole, of[at].Dims...))
		}
	}
	return data.Batch{Fields: fields, Size: fields[0].Array.Len()}
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

var kinds = []string{"bert", "bert-tanh", "roberta", "xlm-roberta", "distilbert", "mpnet", "llama", "llama3", "mistral", "qwen2", "qwen3", "gpt2", "gemma2", "gemma3", "vit", "resnet", "resnet-basic", "t5", "t5-gated", "clip", "whisper"}

const imageClasses, seq2seqLM = "ForImageClassification", "ForConditionalGeneration"

var tasks = map[string]func(b *pretrained.Base) *pretrained.Network{
	"Model":                     (*pretrained.Base).Hidden,
	"ForSequenceClassification": func(b *pretrained.Base) *pretrained.Network { return b.Classifier(0) },
	imageClasses:                func(b *pretrained.Base) *pretrained.Network { return b.Classifier(0) },
	seq2seqLM:                   (*pretrained.Base).Seq2SeqLM,
	"ForTokenClassification":    func(b *pretrained.Base) *pretrained.Network { return b.TokenClassifier(0) },
	"ForQuestionAnswering":      (*pretrained.Base).QuestionAnswering,
	"ForMaskedLM":               (*pretrained.Base).MaskedLM,
	"ForCausalLM":               (*pretrained.Base).CausalLM,
}

// numbers compares the heads of testdata's models with torch. Outputs and gradients differ from torch's in float64 at
// most 10 times as much as torch's own in float32.
func numbers(t *testing.T, kinds ...string) {
	compared := 0
	for _, kind := range kinds {
		f := fixtureOf(t, kind)
		for _, task := range sortedKeys(tasks) {
			if len(f.under(task+"/")) == 0 {
				continue // the architecture has no such head
			}
			t.Run(kind+"/"+task, func(t *testing.T) { compared += f.compare(t, task) })
		}
	}
	require.Positive(t, compared)
	t.Logf("%d arrays compared", compared)
}

func (f fixture) compare(t *testing.T, task string) (compared int) {
	return f.compareOpened(t, task, f.folder(t, task))
}

func (f fixture) compareOpened(t *testing.T, task, path string) (compared int) {
	network := tasks[task](opened(t, path))
	for _, name := range network.Unused() {
		require.Contains(t, name, "pooler.") // that tasks for places do not use
	}
	return f.compareNetwork(t, task, network, network.Rows())
}

func (f fixture) compareNetwork(t *testing.T, task string, network *pretrained.Network, rows []pretrained.Row) (compared int) {
	t.Helper()
	require.Empty(t, network.Drawn())
	var off, gradientsOff float64 // 10 is the limit
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), network.Weights())
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	step := managed.TestStep(func(b *managed.Builder) {
		scope, loss := b.Scope().In("model"), graph.ScalarZero(b.Graph(), dtypes.Float32)
		out := network.Outputs(scope, b.Field)
		for name, v := range out {
			b.Output(name, v)
			if slices.Contains(b.Fields(), "random/"+name) {
				loss = graph.Add(loss, graph.ReduceAllSum(graph.Mul(v, b.Field("random/"+name))))
			}
		}
		if !slices.Contains(b.Fields(), "random/"+sortedKeys(out)[0]) {
			return
		}
		var names []string
		var values []*graph.Node
		for v := range scope.IterVariables() {
			names, values = append(names, v.Path()), append(values, v.NodeValue(b.Graph()))
		}
		for i, gradient := range graph.Gradient(loss, values...) {
			b.Output("grad"+names[i], gradient)
		}
	})
	defer func() { require.NoError(t, step.Close()) }()
	for _, name := range []string{"long", "hole", "left"} {
		outputs := f.under(task + "/" + name + "/")
		if len(outputs) == 0 {
			continue
		}
		_, logs, err := step.Step(t.Context(), state, f.batch(t, name, task))
		require.NoError(t, err)
		numbers := func(output string) ([]float64, []int) {
			got, err := managed.Array(logs, output)
			require.NoError(t, err)
			return widened(got.Flat.([]float32)), got.Dims
		}
		for output, want := range outputs {
			got, dims := numbers(output)
			require.Equal(t, want.Dims, dims)
			off = max(off, f.near(t, task+"/"+name+"/"+output, got, want))
			compared++
		}
		if name != "long" {
			continue
		}
		grads := f.under("grad/" + task + "/")
		for _, of := range rows {
			want, there := grads[of.Name]
			if !there {
				continue
			}
			got, dims := numbers("grad/model/" + of.Own)
			if of.Transposed {
				got = transposed(got, dims)
			}
			gradientsOff = max(gradientsOff, f.near(t, "grad/"+task+"/"+of.Name, got, want))
			delete(grads, of.Name)
			compared++
		}
		require.Empty(t, grads)
	}
	t.Logf("the largest differences over torch's error: outputs %.2f, gradients %.2f", off, gradientsOff)
	return compared
}

func widened(values []float32) []float64 {
	all := make([]float64, len(values))
	for i, x := range values {
		all[i] = float64(x)
	}
	return all
}

// transposed is [out, in, places…] of [places…, in, out].
func transposed(x []float64, dims []int) []float64 {
	in, out := dims[len(dims)-2], dims[len(dims)-1]
	y, places := make([]float64, len(x)), len(x)/in/out
	for p := range places {
		for i := range in {
			for o := range out {
				y[(o*in+i)*places+p] = x[(p*in+i)*out+o]
			}
		}
	}
	return y
}

// near compares with torch's error, and with half a unit of float32 in the largest number, as references are
// rounded.
func (f fixture) near(t *testing.T, name string, got []float64, want array) float64 {
	t.Helper()
	require.Len(t, got, len(want.floats(t)), name)
	worst, largest := 0.0, 0.0
	for i, x := range want.floats(t) {
		if x != x {
			continue // padding
		}
		worst, largest = math.Max(worst, math.Abs(float64(x)-got[i])), math.Max(largest, math.Abs(float64(x)))
	}
	limit := 10*f.errors[name] + largest*0x1p-24
	if !(worst <= limit) {
		t.Errorf("%s %s: the largest difference is %.3g, torch's error %.3g, the largest number %.3g", f.kind, name, worst, f.errors[name], largest)
	}
	return worst / limit * 10
}
