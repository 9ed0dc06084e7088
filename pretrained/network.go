package pretrained

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/layering"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// Network is a pretrained network with a head. flaxlike.New takes it, with its weights. A custom step builds it at
// the scope "model" of a state with its weights:
//
//	state, err := managed.New(strategy, network.Weights(), managed.WithOptimizer(adam))
//	step := managed.TrainStep(func(b *managed.Builder) {
//		logits := network.Outputs(b.Scope().In("model"), b.Field)["logits"]
//		…
//
// Inputs are input_ids and attention_mask, integers [batch, places], and token_type_ids for BERT. The mask is 0 at
// padding. T5 has them also with the prefix decoder_. Images are pixel_values [batch, height, width, channels]:
// floating-point numbers as transformers', or uint8, which the network prepares by preprocessor_config.json.
// flaxlike.New and the state return errors of [Base]'s methods.
type Network struct {
	// Labels are the class names: the folder's if it has as many, otherwise LABEL_0, LABEL_1, ….
	Labels []string

	base      *Base
	family    *family
	task      task
	whole     bool // the folder's model without a head
	weights   []weight
	sentences map[string][]byte // files of sentence-transformers
	outputs   func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node
	adapter   *adapter
	scale     float64 // of Contrastive's loss
	err       error
}

type weight struct {
	tensor
	stored *stored
	head   bool // its name in files has no prefix
	tail   bool // it is used after the body
	packed bool // its variables are blocks
	dtype  dtypes.DType
}

const networkScope = "model"

func (w weight) variable() string { return "/" + networkScope + "/" + w.own }

// Hidden returns the network without a head: the outputs last_hidden_state [batch, places, width] and, if the folder
// has its weights, pooler_output [batch, width]. Those of CLIP are text_embeds and image_embeds [batch, width],
// logits_per_text and logits_per_image [batch, batch].
func (b *Base) Hidden() *Network {
	return b.network(bare, 1, func(f *family, n *Network) head {
		n.whole = true
		_, err := b.take(f.prefix, f.listed(f.pooler))
		if err == nil && f.pool != nil {
			return head{pooled: true, build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
				return map[string]*graph.Node{"last_hidden_state": hidden, "pooler_output": f.pool(s, hidden)}
			}}
		}
		return head{build: func(_ *model.Scope, hidden *graph.Node) map[string]*graph.Node {
			return map[string]*graph.Node{"last_hidden_state": hidden}
		}}
	})
}

// Network returns the folder's own network, with the head that architectures in config.json names. Without one it is
// [Base.Hidden], and [Network.Save] also writes the files of sentence-transformers.
func (b *Base) Network() *Network {
	f, err := b.describe(1)
	switch has := func(of task) bool { return err == nil && len(b.classes) > 0 && b.has(f, of) }; {
	case has(causalLM):
		return b.CausalLM()
	case has(seq2seqLM):
		return b.Seq2SeqLM()
	case has(maskedLM):
		return b.MaskedLM()
	case has(classification):
		return b.Classifier(0)
	case has(tokens):
		return b.TokenClassifier(0)
	case has(answers):
		return b.QuestionAnswering()
	case has(bare):
		n := b.Hidden()
		if _, err := os.Stat(filepath.Join(b.folder, modulesFile)); err == nil && n.err == nil {
			_, _, n.err = b.pooling(n)
		}
		return n
	}
	if err == nil {
		err = fmt.Errorf("architectures in %s is %q, expected a class such as %q", b.file, b.classes, f.classOf(bare))
	}
	return &Network{base: b, err: fmt.Errorf("pretrained: the network of %s: %w", b.folder, err)}
}

// Head returns the network with a custom head, whose variables are drawn. Network.Save omits it.
func (b *Base) Head(build func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node) *Network {
	return b.network(bare, 1, func(*family, *Network) head { return head{build: build} })
}

// Classifier returns the network with a head for a number of classes of texts or images: the output logits [batch,
// classes]. 0 is the folder's number. The head's weights are the folder's if they fit, otherwise drawn.
func (b *Base) Classifier(classes int) *Network { return b.labelled(classification, classes) }

// TokenClassifier is [Base.Classifier] for each place: the output logits [batch, places, classes].
func (b *Base) TokenClassifier(classes int) *Network { return b.labelled(tokens, classes) }

// QuestionAnswering returns the network with a head that finds an answer in a text: the outputs start_logits and
// end_logits [batch, places].
func (b *Base) QuestionAnswering() *Network { return b.labelled(answers, 2) }

// MaskedLM returns the network with a head that predicts masked tokens: the output logits [batch, places, vocabulary],
// by the embeddings of the words.
func (b *Base) MaskedLM() *Network {
	return b.network(maskedLM, 1, func(f *family, _ *Network) head { return f.heads[maskedLM] })
}

// CausalLM returns the network with a head that predicts the next token at each place: the output logits [batch,
// places, vocabulary]. It also takes rows of several texts ([Base.Packed]).
func (b *Base) CausalLM() *Network {
	return b.network(causalLM, 1, func(f *family, _ *Network) head { return f.heads[causalLM] })
}

// Seq2SeqLM returns a network of an encoder and a decoder that predicts the next token of the second text: the output
// logits [batch, places, vocabulary]. Further inputs are decoder_input_ids, which begin with a start token, and
// decoder_attention_mask. Whisper has input_features [batch, frames, bands] instead of the first text.
func (b *Base) Seq2SeqLM() *Network {
	return b.network(seq2seqLM, 1, func(f *family, _ *Network) head { return f.heads[seq2seqLM] })
}

func (b *Base) labelled(of task, classes int) *Network {
	own := classes == 0
	if own {
		classes = len(b.labels)
	}
	return b.network(of, classes, func(f *family, n *Network) (h head) {
		if classes < 1 || classes > mostLabels {
			h.err = fmt.Errorf("%d classes, expected 1 to %d, or 0 for the folder's number", classes, mostLabels)
			return h
		}
		if n.Labels = slices.Clone(b.labels); classes != len(b.labels) {
			n.Labels = standardLabels(classes)
		}
		h = f.heads[of]
		if missing := b.lacks(f, of, h); own && missing != nil {
			h.err = fmt.Errorf("0 classes stand for the folder's, which has no such head: %w: give the number of classes", missing)
		}
		return h
	})
}

// also are classes that contain another's head.
var also = map[task][]task{maskedLM: {forPreTraining, lmHeadModel}}

// has: a folder that lists no classes may have any head.
func (b *Base) has(f *family, of task) bool {
	return len(b.classes) == 0 || slices.ContainsFunc(append([]task{of}, also[of]...), func(t task) bool { return slices.Contains(b.classes, f.classOf(t)) })
}

func (b *Base) lacks(f *family, of task, h head) error {
	if !b.has(f, of) {
		return fmt.Errorf("it is a model of the class %q", b.classes)
	}
	_, err := b.take("", f.listed(h.modules))
	return err
}

func (b *Base) network(of task, classes int, head func(*family, *Network) head) *Network {
	n := &Network{base: b, task: of}
	fail := func(err error) *Network {
		n.err = fmt.Errorf("pretrained: the network %s of %s: %w", of, b.folder, err)
		return n
	}
	if _, err := fileDType(b.DType); err != nil {
		return fail(err)
	}
	f, err := b.describe(classes)
	if err != nil {
		return fail(err)
	}
	n.family = f
	if n.weights, err = b.take(f.prefix, f.listed(f.body)); err != nil {
		return fail(err)
	}
	h := head(f, n)
	if h.build == nil && h.err == nil {
		h.err = errors.New("the architecture has no such head")
	}
	if h.err == nil && f.outputs != nil && !n.whole {
		h.err = fmt.Errorf("a network of %s has no such head, expected Hidden", f.of)
	}
	if h.err != nil {
		return fail(h.err)
	}
	n.outputs, f.first = h.build, h.first
	maybe := func(prefix string, rows []module, there bool) {
		for _, t := range f.listed(rows) {
			s, err := b.find(prefix, t)
			if err != nil || !there {
				s = nil
			}
			n.weights = append(n.weights, weight{tensor: t, stored: s, head: prefix == "", tail: true})
		}
	}
	if h.pooled {
		maybe(f.prefix, f.pooler, true)
	}
	maybe("", h.modules, b.has(f, of))
	some := false
	for i := range n.weights {
		w := &n.weights[i]
		w.dtype = f.dtype
		w.packed = b.Quantized && w.stored != nil && w.stored.raw != nil && forms[w.stored.kind].numbers != nil && len(w.dims) == 2
		some = some || w.packed
	}
	if b.Quantized && !some {
		return fail(errors.New("Base.Quantized is set, and no tensor is in Q8_0 or Q4_0: leave it out, or open such a file .gguf"))
	}
	return n
}

// Outputs builds the network at a scope and returns its outputs by name, in float32 for any DType of the base. input
// returns a field of the batch.
func (n *Network) Outputs(scope *model.Scope, input func(name string) *graph.Node) map[string]*graph.Node {
	if n.err != nil {
		panic(n.err)
	}
	inside := func(name string) *graph.Node {
		x := input(name)
		if n.task != causalLM && isPacked(x) {
			panic(fmt.Errorf("pretrained: the network %s: the batch has the field %s, several texts in a row, which are for CausalLM", n.task, segmentsInput))
		}
		n.begin(scope, x.Graph())
		return x
	}
	defer n.end(scope)
	var out map[string]*graph.Node
	if n.family.outputs != nil {
		out = n.family.outputs(scope, inside)
	} else {
		out = n.outputs(scope, n.family.build(scope, inside))
	}
	for name, y := range out {
		out[name] = wide(y)
	}
	if n.scale != 0 {
		n.contrast(scope, inside, out[embedding])
	}
	return out
}

// wide keeps the mask.
func wide(x *graph.Node) *graph.Node {
	y := graph.ConvertDType(x, dtypes.Float32)
	layering.HandOn(x, y)
	return y
}

// Apply is an error: the network has several inputs.
func (n *Network) Apply(scope *model.Scope, x *graph.Node) *graph.Node {
	return flaxlike.Functional(n.Outputs).Apply(scope, x)
}

// Weights sets the folder's weights in a state, for the network at the scope "model". The state reads each when a step
// creates its variable. Variables that the folder lacks are drawn.
func (n *Network) Weights() managed.Option {
	return func(s *managed.State) error {
		if n.err != nil {
			return n.err
		}
		values := map[string]checkpoint.Tensor{}
		weights := n.weights
		if n.adapter != nil {
			weights = slices.Concat(weights, n.adapter.weights)
		}
		var errs error
		for _, w := range weights {
			to, err := fileDType(w.dtype)
			errs = collected(errs, err)
			if w.packed {
				w.packedValues(values)
			} else if w.stored != nil {
				values[w.variable()] = checkpoint.Tensor{DType: to, Dims: w.shape(), Write: func(out io.Writer) error {
					return w.stored.writeTo(out, to, w.tensor)
				}}
			}
		}
		draws := func(name string) bool { _, given := values[name]; return !given }
		return errors.Join(errs, managed.WithValues(values)(s), managed.DrawMissing(draws)(s))
	}
}

// constant are old files' tensors that are not weights.
var constant = regexp.MustCompile(`\.position_ids$|\.attn\.(masked_)?bias$`)

// Drawn returns the full names of the head's variables that the folder lacks, like "/model/classifier/kernel". They
// begin with random numbers.
func (n *Network) Drawn() (names []string) {
	for _, w := range n.weights {
		if w.stored == nil {
			names = append(names, w.variable())
		}
	}
	return names
}

// FreezeBase is the first link of an optimizer that trains the head alone: it freezes the folder's tensors of other
// parts.
func (n *Network) FreezeBase() optim.Transformation {
	base := map[string]bool{}
	for _, w := range n.weights {
		base[w.variable()] = w.stored != nil && !w.head
	}
	return optim.Frozen(optim.MatchFunc(func(name string, _ shapes.Shape) bool { return base[name] }))
}

// Unused are the folder's tensors that the network does not use, like another head's.
func (n *Network) Unused() (names []string) {
	used := map[string]bool{}
	for _, w := range n.weights {
		if w.stored != nil {
			used[w.stored.Name] = true
		}
	}
	for name := range n.base.tensors {
		if !used[name] && !constant.MatchString(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
