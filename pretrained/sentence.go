package pretrained

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/nn"
)

const (
	modulesFile = "modules.json"
	poolingFile = "1_Pooling/config.json"
)

// Embedder returns the network with sentence-transformers' pooling: the output sentence_embedding [batch, width].
// modules.json and the pooling's config.json configure it; without them it is the mean over the tokens.
func (b *Base) Embedder() *Network {
	return b.network(bare, 1, func(f *family, n *Network) (h head) {
		if f.of != "" {
			return head{err: fmt.Errorf("it is a network of %s, expected one of texts", f.of)}
		}
		modes, normalize, err := b.pooling(n)
		if err != nil {
			return head{err: err}
		}
		return head{build: func(_ *model.Scope, hidden *graph.Node) map[string]*graph.Node {
			var parts []*graph.Node
			for _, mode := range modes {
				parts = append(parts, poolings[mode](hidden, nn.MaskOf(hidden)))
			}
			y := graph.ConvertDType(graph.Concatenate(parts, -1), hidden.DType())
			if normalize {
				y = unit(y)
			}
			return map[string]*graph.Node{embedding: y}
		}}
	})
}

const embedding = "sentence_embedding"

func unit(x *graph.Node) *graph.Node {
	norm := graph.Sqrt(graph.ReduceAndKeep(graph.Square(x), graph.ReduceSum, -1))
	return graph.Div(x, graph.MaxScalar(norm, 1e-12))
}

const sentencesFile = "config_sentence_transformers.json"

// noPrompt refuses a prompt that sentence-transformers puts before each text.
func (b *Base) noPrompt() error {
	c, err := readConfig(b.folder, sentencesFile, mostText)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if c.has("default_prompt_name") {
		c.fail("default_prompt_name", "null: put the prompt before the texts, and take the field away")
	}
	return c.err
}

// transformerFiles configure the module Transformer: the first that exists.
var transformerFiles = []string{"sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json", "sentence_camembert_config.json",
	"sentence_albert_config.json", "sentence_xlm-roberta_config.json", "sentence_xlnet_config.json"}

func (b *Base) transformerConfig() (*config, error) {
	for _, name := range transformerFiles {
		if c, err := readConfig(b.folder, name, mostText); !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
	}
	return &config{}, nil
}

// transformerFields are sentence-transformers', with the values that change nothing; nil: any value, or a rule.
var transformerFields = map[string][]string{"max_seq_length": nil, "do_lower_case": nil, "unpad_inputs": nil, "transformer_task": {`"feature-extraction"`}, "modality_config": nil,
	"module_output_name": {`"token_embeddings"`}, "processing_kwargs": {"{}"}, "query_length": {}, "document_length": {}, "query_expansion": {}, "tokenizer_name_or_path": {},
	"model_args": {"{}", `{"add_pooling_layer":false}`}, "model_kwargs": {"{}", `{"add_pooling_layer":false}`}, "tokenizer_args": {"{}"}, "processor_kwargs": {"{}"},
	"config_args": {"{}"}, "config_kwargs": {"{}"}}

func (b *Base) transformer() error {
	c, err := b.transformerConfig()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.fields)) {
		values, known := transformerFields[name]
		switch {
		case !known:
			c.fail(name, "a field that lazo knows: it may change embeddings; take it away, or do without Base.Embedder")
		case values != nil:
			c.only(name, values...)
		}
	}
	var of map[string]json.RawMessage
	if c.has("modality_config") {
		if c.decode("modality_config", &of) != nil || !outputsHidden(of["text"]) {
			c.fail("modality_config", "the text by the method forward, with the output last_hidden_state")
		}
	}
	if c.flag("do_lower_case", false) && !b.lowers() {
		c.fail("do_lower_case", `false, or a tokenizer.json that lower-cases: set its normalizer to {"type": "Lowercase"}, or to a Sequence that begins with it`)
	}
	return c.err
}

func outputsHidden(modality json.RawMessage) bool {
	fields, err := object(modality)
	in := &config{fields: fields}
	return err == nil && in.text("method", "") == "forward" && in.text("method_output_name", "") == "last_hidden_state"
}

// lowers: the tokenizer lower-cases texts, so do_lower_case changes nothing.
func (b *Base) lowers() bool {
	t, err := b.tokenizer()
	if err != nil {
		return false
	}
	content, err := t.MarshalJSON()
	type part struct {
		Type  string `json:"type"`
		Lower bool   `json:"lowercase"`
	}
	var of struct {
		Normalizer struct {
			part
			Parts []part `json:"normalizers"`
		} `json:"normalizer"`
	}
	if err != nil || json.Unmarshal(content, &of) != nil {
		return false
	}
	n := of.Normalizer
	lowercase := func(p part) bool { return p.Type == "Lowercase" }
	return lowercase(n.part) || n.Type == "BertNormalizer" && n.Lower || n.Type == "Sequence" && slices.ContainsFunc(n.Parts, lowercase)
}

func (b *Base) pooling(n *Network) (modes []string, normalize bool, err error) {
	n.sentences = map[string][]byte{}
	text, err := regular.Read(filepath.Join(b.folder, modulesFile), mostText)
	if filepath.Ext(b.folder) == ggufExt || errors.Is(err, fs.ErrNotExist) {
		n.sentences[modulesFile] = []byte(`[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
 {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
`)
		n.sentences[poolingFile] = fmt.Appendf(nil, "{\"word_embedding_dimension\": %d, \"pooling_mode_mean_tokens\": true}\n", n.family.body[0].parts[0].dims[1])
		return []string{"mean"}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	for _, name := range append([]string{modulesFile, sentencesFile}, transformerFiles...) {
		n.sentences[name] = nil
	}
	var modules []map[string]json.RawMessage
	if err := strict(text, &modules); err != nil {
		return nil, false, fmt.Errorf("%s: %w", modulesFile, err)
	}
	for i, m := range modules {
		c := &config{file: modulesFile, fields: m}
		path, whole := c.text("path", ""), c.text("type", "")
		if c.err != nil {
			return nil, false, c.err
		}
		kind := whole[strings.LastIndex(whole, ".")+1:]
		switch {
		case kind == "Transformer" && i == 0 && path == "":
			if err := b.transformer(); err != nil {
				return nil, false, err
			}
		case kind == "Pooling" && i == 1 && path == filepath.Dir(poolingFile):
			if modes, err = b.modes(); err != nil {
				return nil, false, err
			}
			n.sentences[poolingFile] = nil
		case kind == "Normalize" && i == 2:
			normalize = true
		default:
			return nil, false, fmt.Errorf("%s: module %d is %q in %q, expected Transformer in \"\", Pooling in \"1_Pooling\", and maybe Normalize: others are not implemented", modulesFile, i, whole, path)
		}
	}
	if modes == nil {
		return nil, false, fmt.Errorf("%s lists no module Pooling", modulesFile)
	}
	return modes, normalize, b.noPrompt() // after poolings that cannot have a prompt before texts
}

func (b *Base) modes() (modes []string, err error) {
	text, err := regular.Read(filepath.Join(b.folder, poolingFile), mostText)
	if err != nil {
		return nil, err
	}
	fields, err := object(text)
	if err != nil {
		return nil, err
	}
	c := &config{file: poolingFile, fields: fields}
	if !c.flag("include_prompt", true) {
		c.fail("include_prompt", "true: a pooling without the prompt's tokens is not implemented")
	}
	if c.has("pooling_mode") {
		var one string
		if c.decode("pooling_mode", &one) == nil {
			modes = []string{one}
		} else {
			modes = c.texts("pooling_mode")
		}
	} else {
		for _, old := range [][2]string{{"cls_token", "cls"}, {"max_tokens", "max"}, {"mean_tokens", "mean"}, {"mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
			{"weightedmean_tokens", "weightedmean"}, {"lasttoken", "lasttoken"}} { // in the output's order
			if c.flag("pooling_mode_"+old[0], false) {
				modes = append(modes, old[1])
			}
		}
		if modes == nil {
			modes = []string{"mean"}
		}
	}
	if len(modes) == 0 || slices.ContainsFunc(modes, func(mode string) bool { return poolings[mode] == nil }) {
		c.fail("pooling_mode", "one or several of cls, max, mean, mean_sqrt_len_tokens, weightedmean and lasttoken")
	}
	return modes, c.err
}

// poolings compute [batch, width] of [batch, places, width] and the mask [batch, places].
var poolings = map[string]func(hidden, mask *graph.Node) *graph.Node{
	"cls": func(hidden, mask *graph.Node) *graph.Node {
		return weighted(hidden, numbers32(graph.LogicalAnd(mask, graph.Equal(countedTo(mask), graph.OnesLike(countedTo(mask))))))
	},
	"lasttoken": func(hidden, mask *graph.Node) *graph.Node {
		at := countedTo(mask)
		return weighted(hidden, numbers32(graph.LogicalAnd(mask, graph.Equal(at, graph.BroadcastToDims(graph.ReduceAndKeep(at, graph.ReduceMax, 1), at.Shape().Dimensions...)))))
	},
	"max": func(hidden, mask *graph.Node) *graph.Node {
		none := graph.BroadcastToDims(graph.Scalar(hidden.Graph(), hidden.DType(), math.Inf(-1)), hidden.Shape().Dimensions...)
		return graph.ConvertDType(graph.ReduceMax(graph.Where(graph.BroadcastToDims(graph.ExpandAxes(mask, -1), hidden.Shape().Dimensions...), hidden, none), 1), dtypes.Float32)
	},
	"mean": func(hidden, mask *graph.Node) *graph.Node {
		of := numbers32(mask)
		return graph.Div(weighted(hidden, of), total(of))
	},
	"mean_sqrt_len_tokens": func(hidden, mask *graph.Node) *graph.Node {
		of := numbers32(mask)
		return graph.Div(weighted(hidden, of), graph.Sqrt(total(of)))
	},
	"weightedmean": func(hidden, mask *graph.Node) *graph.Node { // by the place after the first token
		of := numbers32(mask)
		begun := numbers32(graph.GreaterThan(countedTo(mask), graph.ZerosLike(countedTo(mask))))
		of = graph.Mul(of, numbers32(countedTo(graph.GreaterThan(begun, graph.ZerosLike(begun)))))
		return graph.Div(weighted(hidden, of), total(of))
	},
}

func numbers32(x *graph.Node) *graph.Node { return graph.ConvertDType(x, dtypes.Float32) }

func weighted(hidden, weights *graph.Node) *graph.Node {
	return graph.ReduceSum(graph.Mul(numbers32(hidden), graph.ExpandAxes(weights, -1)), 1)
}

func total(weights *graph.Node) *graph.Node {
	return graph.MaxScalar(graph.ReduceAndKeep(weights, graph.ReduceSum, 1), 1e-9)
}
