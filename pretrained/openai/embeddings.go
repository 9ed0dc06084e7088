package openai

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/listed"
)

type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // or bytes in base64
}

const mostInputs = 2048 // as OpenAI

func (c *call) embed() error {
	m, q, err := c.read(embeddings)
	if err != nil {
		return err
	}
	if m.Embedder == nil {
		return wrong("model", "the model %q makes completions only", m.name)
	}
	if len(q.inputs) > mostInputs {
		return wrong("input", "there are %d texts, expected at most %d", len(q.inputs), mostInputs)
	}
	leave, err := m.enter(c.r.Context())
	if err != nil {
		return err
	}
	defer leave()
	inputs := make([]text.Encoding, len(q.inputs))
	used := usage{}
	for i, in := range q.inputs {
		if inputs[i] = (text.Encoding{IDs: in.ids, Types: make([]int32, len(in.ids))}); in.ids == nil {
			if inputs[i], err = m.Tokenizer.EncodeText(text.Input{Text: in.text}); err != nil {
				return wrong("input", "%v", listed.Short(err))
			}
		}
		if err := m.fits("input", inputs[i].IDs, m.Longest); err != nil {
			return err
		}
		used.Prompt += len(inputs[i].IDs)
	}
	used.Total = used.Prompt
	all := make([]embedding, len(inputs))
	for i, in := range inputs {
		vector, err := m.vector(c, in)
		if err != nil {
			return err
		}
		if q.dimensions != nil && *q.dimensions != len(vector) {
			return wrong("dimensions", "dimensions is %d, expected %d, the model's", *q.dimensions, len(vector))
		}
		if all[i] = (embedding{"embedding", i, vector}); q.base64 {
			bytes, err := binary.Append(nil, binary.LittleEndian, vector)
			if err != nil {
				return err
			}
			all[i].Embedding = base64.StdEncoding.EncodeToString(bytes)
		}
	}
	leave()
	return c.answer(map[string]any{"object": "list", "model": m.name, "data": all, "usage": map[string]int{"prompt_tokens": used.Prompt, "total_tokens": used.Total}})
}

// vector pads to a power of two: few programs are compiled.
func (m *served) vector(c *call, in text.Encoding) ([]float32, error) {
	n, padded := len(in.IDs), 1
	for padded < n {
		padded *= 2
	}
	padded = min(padded, m.Longest)
	ids, types, mask := make([]int32, padded), make([]int32, padded), make([]int32, padded)
	pad, _ := m.Tokenizer.Special("pad")
	for i := range ids {
		if ids[i] = pad; i < n {
			ids[i], types[i], mask[i] = in.IDs[i], in.Types[i], 1
		}
	}
	outputs, err := m.Embedder.Answer(c.r.Context(), data.Batch{Size: 1, Fields: []data.Field{data.Named("input_ids", ids, 1, padded),
		data.Named("attention_mask", mask, 1, padded), data.Named("token_type_ids", types, 1, padded)}})
	if err != nil {
		if c.r.Context().Err() != nil {
			return nil, c.ended(err)
		}
		return nil, err
	}
	const name = "sentence_embedding"
	vector, ok := outputs[name].Flat.([]float32)
	if !ok || len(vector) == 0 {
		return nil, fmt.Errorf("openai: the Embedder of the model %q has no output %q of float32: expected a network of pretrained.Base.Embedder", m.name, name)
	}
	for _, v := range vector {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("openai: an embedding by the model %q is not finite", m.name)
		}
	}
	return vector, nil
}
