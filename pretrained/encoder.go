package pretrained

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/lazo-ml/lazo/nn"
)

type encoder struct {
	vocabulary, width, inner, heads, layers, places, types int
	padding                                                int // without trained vectors; -1 for none
	epsilon, deviation                                     float64
	dropout, attentionDropout, scoresDropout               float64 // after dense layers, after attention, and within it
	activation                                             nn.Activation
	chosen
	untied error // of words
}

func encoderOf(c *config, epsilon float64, padding int) encoder {
	c.only("position_embedding_type", `"absolute"`)
	c.only("is_decoder", "false")
	c.only("add_cross_attention", "false")
	c.encoder()
	e := encoder{
		vocabulary: c.size("vocab_size", 0), width: c.size("hidden_size", 0), inner: c.size("intermediate_size", 0),
		heads: c.size("num_attention_heads", 0), layers: c.size("num_hidden_layers", 0), places: c.size("max_position_embeddings", 0),
		epsilon: c.positive("layer_norm_eps", epsilon), dropout: c.rate("hidden_dropout_prob", 0.1),
		scoresDropout: c.rate("attention_probs_dropout_prob", 0.1), deviation: c.positive("initializer_range", 0.02),
		activation: c.activation("hidden_act", "gelu"), chosen: c.chosen,
	}
	e.untied, e.attentionDropout = c.untied(), e.dropout
	e.padding = c.id("pad_token_id", padding, e.vocabulary)
	c.divides("num_attention_heads", e.heads, "hidden_size", e.width)
	return e
}

func (c *config) encoder() {
	c.only("is_encoder_decoder", "false")
	c.only("pruned_heads", "{}")
	c.only("quantization_config")
}

func (c *config) untied() error {
	if c.flag("tie_word_embeddings", true) {
		return nil
	}
	return fmt.Errorf("%s: tie_word_embeddings is false, expected true: separate embeddings of the output are not implemented", configFile)
}

func (c *config) divides(name string, n int, of string, size int) {
	if size%n != 0 {
		c.fail(name, "a divisor of %s, %d", of, size)
	}
}

type inputs func(name string) *graph.Node

const (
	idsInput   = "input_ids"
	maskInput  = "attention_mask"
	typesInput = "token_type_ids"
)

func (in inputs) ids(name string) *graph.Node {
	x := in(name)
	if !x.DType().IsInt() || x.Rank() != 2 {
		panic(fmt.Errorf("pretrained: the input %q is %s, expected whole numbers [batch, places]", name, x.Shape()))
	}
	return x
}

// mask is false at padding.
func (in inputs) mask(ids *graph.Node) *graph.Node { return in.maskOf(maskInput, ids) }

func (in inputs) maskOf(name string, ids *graph.Node) *graph.Node {
	x := in(name)
	if !x.Shape().EqualDimensions(ids.Shape()) || !x.DType().IsInt() && x.DType() != dtypes.Bool {
		panic(fmt.Errorf("pretrained: the input %q is %s, expected whole numbers or bool of the shape of %q, %s", name, x.Shape(), strings.Replace(name, maskInput, idsInput, 1), ids.Shape()))
	}
	if x.DType() == dtypes.Bool {
		return x
	}
	return graph.NotEqual(x, graph.ScalarZero(x.Graph(), x.DType()))
}

// notGiven draws no initial values of pretrained weights.
func notGiven(*graph.Graph, shapes.Shape) *graph.Node {
	panic(errors.New("pretrained: the network has no weights: make the state with its Weights or the model with flaxlike.New, and apply the network at the scope \"model\""))
}

// embed's padding has no gradient, as in torch; -1 for none.
func (e encoder) embed(s *model.Scope, ids *graph.Node, rows, padding int) *graph.Node {
	y := nn.Embedding{Vocabulary: rows, Width: e.width, DType: e.dtype, Initial: notGiven}.Apply(s, ids)
	if padding < 0 {
		return y
	}
	pad := graph.Equal(ids, graph.Scalar(ids.Graph(), ids.DType(), padding))
	return graph.Where(graph.BroadcastToDims(graph.ExpandAxes(pad, -1), y.Shape().Dimensions...), graph.StopGradient(y), y)
}

// numbered adds positions from after the padding's id on, but not to padding, as RoBERTa.
func (e encoder) numbered(s *model.Scope, ids *graph.Node, padding int) *graph.Node {
	g, places := ids.Graph(), ids.Shape().Dimensions[1]
	if most := e.places - padding - 1; places > most {
		panic(fmt.Errorf("pretrained: the input %q is %s, expected at most %d places", idsInput, ids.Shape(), most))
	}
	counts := graph.NotEqual(ids, graph.Scalar(g, ids.DType(), padding))
	number := graph.Mul(countedTo(counts), graph.ConvertDType(counts, dtypes.Int32))
	return e.embed(s, graph.AddScalar(number, float64(padding)), e.places, padding)
}

func countedTo(counts *graph.Node) *graph.Node {
	places := counts.Shape().Dimensions[1]
	square := shapes.Make(dtypes.Int32, places, places)
	earlier := graph.LessOrEqual(graph.Iota(counts.Graph(), square, 0), graph.Iota(counts.Graph(), square, 1))
	return graph.Dot(graph.ConvertDType(counts, dtypes.Int32), graph.ConvertDType(earlier, dtypes.Int32)).Product()
}

func (e encoder) norm(s *model.Scope, x *graph.Node) *graph.Node {
	return nn.LayerNorm{Epsilon: e.epsilon}.Apply(s, x)
}

func (e encoder) embedded(s *model.Scope, sum *graph.Node) *graph.Node {
	return nn.Dropout{Rate: e.dropout}.Apply(s, e.norm(s.In("norm"), sum))
}

// encode applies the layers of attention and two dense layers, normalized after each sum. For a head of the first
// place, the last layer computes only this.
func (e encoder) encode(s *model.Scope, x, mask, bias *graph.Node, firstAlone bool) *graph.Node {
	for i := range e.layers {
		s := s.In("layer_%d", i)
		x = e.layer(x, func(x *graph.Node) *graph.Node {
			a, y := nn.Attention{Heads: e.heads, Mask: mask, Bias: bias, Dropout: e.scoresDropout}, x
			if firstAlone && i == e.layers-1 {
				x = graph.SliceAxis(x, 1, graph.AxisRange(0, 1))
				if bias != nil {
					a.Bias = graph.SliceAxis(bias, 2, graph.AxisRange(0, 1))
				}
				y = a.Cross(s.In("attention"), x, y)
			} else {
				y = a.Apply(s.In("attention"), x)
			}
			x = e.norm(s.In("attention_norm"), graph.Add(x, nn.Dropout{Rate: e.attentionDropout}.Apply(s, y)))
			y = e.activation.Apply(s, nn.Dense{Units: e.inner}.Apply(s.In("up"), x))
			y = nn.Dense{Units: e.width}.Apply(s.In("down"), y)
			return e.norm(s.In("norm"), graph.Add(x, nn.Dropout{Rate: e.dropout}.Apply(s, y)))
		})
	}
	if x.Shape().Dimensions[1] < mask.Shape().Dimensions[1] {
		mask = graph.SliceAxis(mask, 1, graph.AxisRange(0, 1))
	}
	return nn.Masked(x, mask)
}

func (e encoder) rows(query, key, value, output, attentionNorm, up, down, norm2 string) []module {
	square := linear(e.width, e.width)
	return []module{
		{query, "layer_#/attention/query", square}, {key, "layer_#/attention/key", square}, {value, "layer_#/attention/value", square},
		{output, "layer_#/attention/output", square}, {attentionNorm, "layer_#/attention_norm", norm(e.width)},
		{up, "layer_#/up", linear(e.width, e.inner)}, {down, "layer_#/down", linear(e.inner, e.width)}, {norm2, "layer_#/norm", norm(e.width)},
	}
}

func first(x *graph.Node) *graph.Node {
	dims := x.Shape().Dimensions
	return graph.Reshape(graph.Slice(x, graph.AxisRange(), graph.AxisElem(0), graph.AxisRange()), dims[0], dims[2])
}

func (e encoder) pool(s *model.Scope, hidden *graph.Node) *graph.Node {
	return graph.Tanh(e.draw(s.In("pooler"), first(hidden), e.width))
}

func (e encoder) draw(s *model.Scope, x *graph.Node, units int) *graph.Node {
	return nn.Dense{Units: units, Kernel: nn.RandomNormal(e.deviation)}.Apply(s, x)
}

func logits(x *graph.Node) map[string]*graph.Node { return map[string]*graph.Node{"logits": x} }

func (e encoder) tokens(dropout float64, labels int) head {
	return head{modules: []module{{"classifier", "classifier", linear(e.width, labels)}}, build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
		return logits(e.draw(s.In("classifier"), nn.Dropout{Rate: dropout}.Apply(s, hidden), labels))
	}}
}

func (e encoder) answers(dropout float64) head {
	return head{modules: []module{{"qa_outputs", "qa_outputs", linear(e.width, 2)}}, build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
		both := e.draw(s.In("qa_outputs"), nn.Dropout{Rate: dropout}.Apply(s, hidden), 2)
		one := func(i int) *graph.Node {
			return graph.Squeeze(graph.Slice(both, graph.AxisRange(), graph.AxisRange(), graph.AxisElem(i)), -1)
		}
		return map[string]*graph.Node{"start_logits": one(0), "end_logits": one(1)}
	}}
}

func (e encoder) twoLayers(dropout float64, labels int) head {
	modules := []module{{"classifier.dense", "dense", linear(e.width, e.width)}, {"classifier.out_proj", "classifier", linear(e.width, labels)}}
	return head{modules: modules, first: true, build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
		drop := nn.Dropout{Rate: dropout}
		x := graph.Tanh(e.draw(s.In("dense"), drop.Apply(s, first(hidden)), e.width))
		return logits(e.draw(s.In("classifier"), drop.Apply(s, x), labels))
	}}
}

func (e encoder) words(dense, norm2, bias string, activation nn.Activation) head {
	modules := []module{{dense, "transform", linear(e.width, e.width)}, {norm2, "transform_norm", norm(e.width)}, {bias, "words_bias", vector("bias", e.vocabulary)}}
	return head{modules: modules, err: e.untied, build: func(s *model.Scope, hidden *graph.Node) map[string]*graph.Node {
		x := e.norm(s.In("transform_norm"), activation.Apply(s, e.draw(s.In("transform"), hidden, e.width)))
		y := nn.Embedding{Vocabulary: e.vocabulary, Width: e.width, DType: e.dtype}.Logits(s.At("words"), x)
		bias := s.In("words_bias").WithInitializer(graph.Zeros).VariableWithShape("bias", shapes.Make(y.DType(), e.vocabulary)).NodeValue(y.Graph())
		return logits(nn.Masked(graph.Add(y, graph.ExpandLeftToRank(bias, y.Rank())), nn.MaskOf(hidden)))
	}}
}
