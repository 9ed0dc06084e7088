package pretrained

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/nn"
)

// family describes an architecture: the names and shapes of its tensors, and its layers.
type family struct {
	class  string
	prefix string // of the body's tensors with a head: "bert."
	layers int    // for # in names
	types  bool   // takes token_type_ids
	places int    // of texts at most; 0: no bound
	// renamed: transformers' modules have other names than its files, and peft those of modules.
	renamed bool
	of      string // "images", and others; else texts
	dtype   dtypes.DType
	body    []module
	pooler  []module // empty if folder or architecture lack one
	// build returns [batch, places, width], with first at least the first place. pool is of the first place.
	build func(s *model.Scope, in inputs) *graph.Node
	pool  func(s *model.Scope, hidden *graph.Node) *graph.Node
	first bool
	// outputs replace build, in networks of several inputs without one hidden state.
	outputs func(s *model.Scope, in inputs) map[string]*graph.Node
	heads   map[task]head
	// decode and caches are of decoders: build for the places after those of caches.
	decode func(s *model.Scope, ids *graph.Node, caches []nn.Cache) *graph.Node
	caches func(s *model.Scope, g *graph.Graph, rows, places int) []nn.Cache
	// decoder is of Llama and its relatives.
	decoder *decoder
}

var families = map[string]func(c *config) *family{
	"bert": bert, "roberta": roberta, "xlm-roberta": xlmRoberta, "distilbert": distilBERT, "mpnet": mpNet,
	"llama": llama, "mistral": mistral, "qwen2": qwen2, "qwen3": qwen3, "gpt2": gpt2,
	"gemma2": gemma2, "gemma3_text": gemma3, "vit": vit, "resnet": resNet, "t5": t5, "clip": clip, "whisper": whisper,
}

type task string

const (
	bare           task = "Model"
	classification task = "ForSequenceClassification"
	tokens         task = "ForTokenClassification"
	answers        task = "ForQuestionAnswering"
	maskedLM       task = "ForMaskedLM"
	causalLM       task = "ForCausalLM"
	imageClasses   task = "ForImageClassification"
	seq2seqLM      task = "ForConditionalGeneration"
	forPreTraining task = "ForPreTraining" // contains maskedLM
	lmHeadModel    task = "LMHeadModel"    // likewise
)

type head struct {
	class   string
	modules []module
	pooled  bool // needs the pooler
	first   bool // reads the first place alone
	build   func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node
	err     error
}

func (h head) of(class string) head {
	h.class = class
	return h
}

func (f *family) classOf(of task) string {
	return cmp.Or(f.heads[of].class, f.class+string(of))
}

// module is a row of a table: PyTorch's module, its layer's scope here, and its tensors.
type module struct {
	file, own string
	parts     []part
}

type part struct {
	file, own, older string
	dims             []int // in the file
	transposed       bool  // lazo has the first two axes last, swapped
	shape            []int // here, if not the file's
	count            bool  // a whole number in files, each element here
}

// linear is torch.nn.Linear, [out, in] in files: nn.Dense.
func linear(in, out int) []part {
	return append(linearNoBias(in, out), part{file: "bias", own: "bias", dims: []int{out}})
}

func linearNoBias(in, out int) []part {
	return []part{{file: "weight", own: "kernel", dims: []int{out, in}, transposed: true}}
}

// conv1D is transformers' Conv1D, [in, out] in files: nn.Dense.
func conv1D(in, out int) []part {
	return []part{{file: "weight", own: "kernel", dims: []int{in, out}}, {file: "bias", own: "bias", dims: []int{out}}}
}

// conv is torch.nn.Conv2d, [out, in, height, width] in files: nn.Conv.
func conv(in, out, height, width int) []part {
	return []part{{file: "weight", own: "kernel", dims: []int{out, in, height, width}, transposed: true}, {file: "bias", own: "bias", dims: []int{out}}}
}

// conv1 is torch.nn.Conv1d.
func conv1(in, out, window int) []part {
	return []part{{file: "weight", own: "kernel", dims: []int{out, in, window}, transposed: true}, {file: "bias", own: "bias", dims: []int{out}}}
}

// batchNorm is torch.nn.BatchNorm2d: nn.BatchNorm.
func batchNorm(n int) []part {
	return []part{
		{file: "weight", own: "scale", dims: []int{n}}, {file: "bias", own: "offset", dims: []int{n}},
		{file: "running_mean", own: "mean", dims: []int{n}}, {file: "running_var", own: "variance", dims: []int{n}},
		{file: "num_batches_tracked", own: "avg_weight", dims: []int{}, shape: []int{n}, count: true},
	}
}

// norm is torch.nn.LayerNorm: nn.LayerNorm.
func norm(n int) []part {
	return []part{{file: "weight", own: "gamma", older: "gamma", dims: []int{n}}, {file: "bias", own: "beta", older: "beta", dims: []int{n}}}
}

// rms is an RMSNorm: nn.RMSNorm.
func rms(n int) []part {
	return []part{{file: "weight", own: "scale", dims: []int{n}}}
}

// table is torch.nn.Embedding: nn.Embedding.
func table(rows, n int) []part {
	return []part{{file: "weight", own: "embeddings", dims: []int{rows, n}}}
}

func vector(name string, n int) []part {
	return []part{{file: name, own: name, dims: []int{n}}}
}

type tensor struct {
	name, older string
	own         string // below the network's scope
	dims        []int
	transposed  bool
	reshaped    []int
	count       bool
}

func (t tensor) shape() []int {
	switch {
	case t.transposed:
		return append(slices.Clone(t.dims[2:]), t.dims[1], t.dims[0])
	case t.reshaped != nil:
		return t.reshaped
	}
	return t.dims
}

// places is the product of the axes after the first two.
func (t tensor) places() int {
	n := 1
	for _, d := range t.dims[2:] {
		n *= d
	}
	return n
}

func (f *family) listed(modules []module) (all []tensor) {
	add := func(m module, layer string) {
		for _, p := range m.parts {
			t := tensor{name: strings.TrimPrefix(m.file+"."+p.file, "."), own: m.own + "/" + p.own, dims: p.dims, transposed: p.transposed, reshaped: p.shape, count: p.count}
			if p.older != "" {
				t.older = m.file + "." + p.older
			}
			t.name, t.older, t.own = strings.Replace(t.name, "#", layer, 1), strings.Replace(t.older, "#", layer, 1), strings.Replace(t.own, "#", layer, 1)
			all = append(all, t)
		}
	}
	for _, m := range modules {
		if !strings.Contains(m.file, "#") {
			add(m, "")
			continue
		}
		for i := range f.layers {
			add(m, strconv.Itoa(i))
		}
	}
	return all
}
