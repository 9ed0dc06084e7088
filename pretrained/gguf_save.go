package pretrained

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/regular"
)

// ggufKinds are the types that SaveGGUF writes, with their numbers in general.file_type.
var ggufKinds = map[string]struct{ kind, file uint64 }{"F32": {0, 0}, "F16": {1, 1}, "BF16": {30, 32}, "Q8_0": {8, 7}}

const ggufAlignment = 32

// SaveGGUF writes one file .gguf with the network's values in a model, or with the folder's if model is nil, and with
// the tokenizer, by the names and keys of llama.cpp. [Open] and transformers read it. kind is the type of tensors of
// at least 2 axes: F32, F16, BF16 or Q8_0; others are F32. It replaces a file at once. Do not train the model
// meanwhile.
//
// Errors: a network that is not a CausalLM of llama, mistral, qwen2 or qwen3, settings that such files lack, as a
// sliding window, a tokenizer that [text.Tokenizer.Vocabulary] refuses, and in Q8_0 rows that are not multiples of 32
// numbers. A file has one token that ends texts, and no limits of texts.
func (n *Network) SaveGGUF(file string, model Values, kind string) error {
	err := n.err
	if err == nil {
		err = n.saveGGUF(file, model, kind)
	}
	if err != nil {
		return fmt.Errorf("pretrained: save %s: %w", file, err)
	}
	return nil
}

func (n *Network) saveGGUF(file string, model Values, kind string) error {
	of, known := ggufKinds[kind]
	if !known {
		return fmt.Errorf("the type %q, expected one of %q", kind, slices.Sorted(maps.Keys(ggufKinds)))
	}
	if filepath.Ext(file) != ggufExt {
		return fmt.Errorf("the name does not end with %s, as Open expects of such a file", ggufExt)
	}
	arch := n.base.text("model_type")
	for name, m := range ggufModels {
		if m.also == arch {
			arch = name
		}
	}
	if _, known := ggufModels[arch]; !known || n.task != causalLM {
		return fmt.Errorf("the network is %s, expected CausalLM of one of %q: others have no names in such files", n.family.classOf(n.task), slices.Sorted(maps.Keys(ggufModels)))
	}
	g := &ggufFile{values: map[string]any{"general.architecture": arch, "general.file_type": of.file}, tensors: map[string]stored{}}
	if blocks[of.kind].numbers != nil {
		g.values["general.quantization_version"] = uint64(2)
	}
	errs := []error{n.base.ggufSettings(g, arch, n.family.decoder), n.base.ggufTokenizer(g, n.family.decoder.vocabulary)}
	var list []ggufTensor
	weights := map[string]weight{}
	for _, w := range n.weights {
		t := ggufTensor{name: ggufName(n.savedName(w)), dims: w.dims, kind: of.kind}
		if t.name == "" {
			errs = append(errs, fmt.Errorf("the tensor %q has no name in such files", n.savedName(w)))
			continue
		}
		if len(t.dims) == 1 {
			t.kind = 0
		}
		b, row := blocks[t.kind], t.dims[len(t.dims)-1]
		if row%b.elements != 0 {
			errs = append(errs, fmt.Errorf("the tensor %q has rows of %d numbers, expected a multiple of %d for %s: use F16", n.savedName(w), row, b.elements, kind))
		}
		if t.size = int64(row / b.elements * b.bytes); len(t.dims) > 1 {
			t.size *= int64(t.dims[0])
		}
		if len(list) > 0 {
			before := list[len(list)-1]
			t.at = aligned(before.at + before.size)
		}
		list = append(list, t)
		weights[t.name], g.tensors[t.name] = w, t.stored(nil)
	}
	if err := errors.Join(errs[:min(len(errs), 10)]...); err != nil {
		return err
	}
	if err := n.readsAs(g); err != nil {
		return err
	}
	return regular.Replace(file, func(f *os.File) error {
		out := bufio.NewWriterSize(f, piece)
		err := g.write(out, list, func(t ggufTensor, to io.Writer) error {
			w, head := weights[t.name], 0
			if ggufModels[arch].permuted && attentionProjection.MatchString(n.savedName(w)) {
				head = n.family.decoder.headWidth
			}
			return n.writeGGUF(to, t, w, head, model)
		})
		return errors.Join(err, out.Flush())
	})
}

func (n *Network) readsAs(g *ggufFile) error {
	c, tensors, err := g.model()
	if err != nil {
		return err
	}
	read := &config{fields: c.fields, file: c.file, chosen: chosen{dtype: n.family.dtype}, classes: 1, tensors: tensors}
	f := families[read.text("model_type", "")](read)
	if read.err != nil {
		return read.err
	}
	rows := map[string]string{}
	for _, t := range slices.Concat(f.listed(f.body), f.listed(f.heads[causalLM].modules)) {
		rows[t.own] = fmt.Sprint(t.dims)
	}
	for _, w := range n.weights {
		if rows[w.own] != fmt.Sprint(w.dims) {
			return fmt.Errorf("a file .gguf would have no tensor %q of the shape %v", n.savedName(w), w.dims)
		}
	}
	return n.family.decoder.same(f.decoder, n.base.file)
}

func (d decoder) same(o *decoder, file string) error {
	near := func(x, y []float64) bool {
		return slices.EqualFunc(x, y, func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Abs(a) }) // they are float32
	}
	windows := true
	for i := range d.layers {
		windows = windows && d.window(i) == o.window(i)
	}
	for _, of := range []struct {
		field string
		same  bool
	}{
		{"num_hidden_layers", d.layers == o.layers}, {"hidden_act", d.activation == o.activation}, {"sliding_window", windows},
		{"num_attention_heads", d.heads == o.heads && d.keyHeads == o.keyHeads && d.headWidth == o.headWidth}, {"rope_parameters or rope_scaling", near(d.rates, o.rates)},
		{"rms_norm_eps", float32(d.epsilon) == float32(o.epsilon)}, {"attention_bias", d.bias == o.bias && d.outputBias == o.outputBias}, {"mlp_bias", d.gateBias == o.gateBias},
		{"tie_word_embeddings", d.tied == o.tied},
	} {
		if !of.same {
			return fmt.Errorf("%s: a file .gguf cannot have the setting %s of this model: save a folder by Network.Save", file, of.field)
		}
	}
	return nil
}

func (b *Base) text(field string) string { return (&config{fields: b.fields}).text(field, "") }

func (b *Base) ggufSettings(g *ggufFile, arch string, d *decoder) error {
	c := &config{fields: b.fields, file: b.file}
	values := map[string]any{
		"hidden_size": uint64(d.width), "intermediate_size": uint64(d.inner), "num_hidden_layers": uint64(d.layers), "num_attention_heads": uint64(d.heads),
		"num_key_value_heads": uint64(d.keyHeads), "head_dim": uint64(d.headWidth), "rms_norm_eps": float32(d.epsilon),
		"max_position_embeddings": uint64(c.size("max_position_embeddings", 0)), // architectures' standards differ
	}
	base, factor := c.positive("rope_theta", 1e4), 0.0
	if name := c.ropeField(); c.has(name) {
		c.within(name, func(in *config) {
			if base = in.positive("rope_theta", base); in.text(in.ropeKind(), "") == "linear" {
				factor = in.needed("factor")
			}
		})
	}
	values["rope_theta"] = float32(base)
	for name, key := range ggufFields {
		g.values[arch+"."+key] = values[name]
	}
	if factor > 0 {
		g.values[arch+".rope.scaling.type"], g.values[arch+".rope.scaling.factor"] = "linear", float32(factor)
	}
	g.values[arch+".attention.value_length"], g.values[arch+".rope.dimension_count"] = uint64(d.headWidth), uint64(d.headWidth)
	g.values[arch+".vocab_size"] = uint64(d.vocabulary)
	return c.err
}

// ggufTokenizer also sets the values of a file without one.
func (b *Base) ggufTokenizer(g *ggufFile, size int) error {
	c := &config{fields: b.fields, file: b.file}
	for _, role := range []string{"bos", "eos", "pad"} {
		if ids := c.ids(role + "_token_id"); len(ids) > 0 {
			g.values[ggufTokens+ggufRoles[role]+"_token_id"] = uint64(ids[0])
		}
	}
	t, err := b.Tokenizer()
	if errors.Is(err, fs.ErrNotExist) {
		for _, name := range []string{"vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model", "tekken.json"} {
			if _, there := os.Stat(filepath.Join(b.folder, name)); there == nil {
				return fmt.Errorf("the folder has %s and no tokenizer.json, expected this file: save the tokenizer by transformers", name)
			}
		}
		g.values[ggufTokens+"model"] = noTokenizer
		return c.err
	}
	if err != nil {
		return err
	}
	v, err := t.Vocabulary(size)
	if err != nil {
		return err
	}
	for role, id := range v.Special {
		g.values[ggufTokens+ggufRoles[role]+"_token_id"] = uint64(id)
	}
	types := ggufNumbers{kind: 5}
	for _, n := range v.Types {
		types.data = binary.LittleEndian.AppendUint32(types.data, uint32(n))
	}
	for key, value := range map[string]any{"model": v.Model, "pre": v.Pre, "tokens": v.Tokens, "token_type": types, "merges": v.Merges, "add_bos_token": v.AddBOS} {
		g.values[ggufTokens+key] = value
	}
	if v.Template != "" {
		g.values["tokenizer.chat_template"] = v.Template
	}
	return c.err
}

func aligned(n int64) int64 { return (n + ggufAlignment - 1) / ggufAlignment * ggufAlignment }

func (g *ggufFile) write(to io.Writer, list []ggufTensor, data func(t ggufTensor, to io.Writer) error) error {
	header := ggufHeader("GGUF")
	header.number(3, 4)
	header.number(uint64(len(list)), 8)
	header.number(uint64(len(g.values)), 8)
	for _, key := range slices.Sorted(maps.Keys(g.values)) {
		header.text(key)
		if err := header.value(g.values[key]); err != nil {
			return fmt.Errorf("the value of %s: %w", listed.Quoted(key), err)
		}
	}
	for _, t := range list {
		header.text(t.name)
		header.number(uint64(len(t.dims)), 4)
		for _, n := range slices.Backward(t.dims) {
			header.number(uint64(n), 8)
		}
		header.number(t.kind, 4)
		header.number(uint64(t.at), 8)
	}
	counted := &counter{to: to}
	_, err := counted.Write(header)
	pad := func() error {
		_, err := counted.Write(make([]byte, aligned(counted.n)-counted.n))
		return err
	}
	err = errors.Join(err, pad())
	begin := counted.n
	for _, t := range list {
		if err != nil {
			return err
		}
		if err = data(t, counted); err == nil && counted.n != begin+t.at+t.size {
			err = fmt.Errorf("%d bytes, expected %d", counted.n-begin-t.at, t.size)
		}
		if err != nil {
			return fmt.Errorf("the tensor %s: %w", listed.Quoted(t.name), err)
		}
		err = pad()
	}
	return err
}

type counter struct {
	to io.Writer
	n  int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}

type ggufHeader []byte

func (h *ggufHeader) number(n uint64, bytes int) {
	*h = append(*h, binary.LittleEndian.AppendUint64(nil, n)[:bytes]...)
}

func (h *ggufHeader) text(s string) {
	h.number(uint64(len(s)), 8)
	*h = append(*h, s...)
}

// value writes whole numbers as uint32.
func (h *ggufHeader) value(of any) error {
	switch of := of.(type) {
	case uint64:
		if of > math.MaxUint32 {
			return fmt.Errorf("it is %d, expected at most %d", of, uint32(math.MaxUint32))
		}
		h.number(4, 4)
		h.number(of, 4)
	case float32:
		h.number(6, 4)
		h.number(uint64(math.Float32bits(of)), 4)
	case bool:
		h.number(7, 4)
		h.number(map[bool]uint64{true: 1}[of], 1)
	case string:
		h.number(ggufText, 4)
		h.text(of)
	case []string:
		h.number(ggufList, 4)
		h.number(ggufText, 4)
		h.number(uint64(len(of)), 8)
		for _, s := range of {
			h.text(s)
		}
	case ggufNumbers:
		h.number(ggufList, 4)
		h.number(of.kind, 4)
		h.number(uint64(len(of.data)/ggufSizes[of.kind]), 8)
		*h = append(*h, of.data...)
	default:
		return fmt.Errorf("it is of the type %T, which is not implemented", of)
	}
	return nil
}

func (n *Network) writeGGUF(to io.Writer, t ggufTensor, w weight, head int, model Values) error {
	b := blocks[t.kind]
	if b.numbers != nil {
		block, out := make([]byte, b.bytes), to
		to = &parts{size: b.elements * 4, each: func(data []byte) error {
			x, err := safetensors.Values[float32](data)
			if err == nil {
				err = q8(x, block)
			}
			if err == nil {
				_, err = out.Write(block)
			}
			return err
		}}
	}
	if head > 0 {
		row := b.dtype.Bits() / 8
		for _, n := range t.dims[1:] {
			row *= n
		}
		out, rows := to, make([]byte, head*row)
		to = &parts{size: head * row, each: func(data []byte) error {
			for i := range head {
				copy(rows[permuted(i, head)*row:][:row], data[i*row:])
			}
			_, err := out.Write(rows)
			return err
		}}
	}
	return n.writeTensor(to, w, b.dtype, model)
}

type parts struct {
	size int
	held []byte
	each func(part []byte) error
}

func (p *parts) Write(data []byte) (int, error) {
	n := len(data)
	for len(data) > 0 {
		if len(p.held) == 0 && len(data) >= p.size {
			if err := p.each(data[:p.size]); err != nil {
				return 0, err
			}
			data = data[p.size:]
			continue
		}
		more := min(p.size-len(p.held), len(data))
		p.held, data = append(p.held, data[:more]...), data[more:]
		if len(p.held) == p.size {
			if err := p.each(p.held); err != nil {
				return 0, err
			}
			p.held = p.held[:0]
		}
	}
	return n, nil
}
