package huggingface

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/eliben/go-sentencepiece"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/shield"
)

type sentencePiece struct {
	processor *sentencepiece.Processor
	size      int
}

// Encode adds no tokens for beginning and end.
func parseSentencePiece(model []byte) (text.Tokenizer, error) {
	if err := checkSentencePiece(model); err != nil {
		return nil, fmt.Errorf("huggingface: tokenizer.model: %w", err)
	}
	t := &sentencePiece{}
	err := shield.Do(func() (err error) {
		if t.processor, err = sentencepiece.NewProcessor(bytes.NewReader(model)); err == nil {
			t.size = t.processor.ModelInfo().VocabularySize
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("huggingface: tokenizer.model: %w", err)
	}
	return t, nil
}

// checkSentencePiece refuses what go-sentencepiece v0.7.0 ignores or assumes.
func checkSentencePiece(model []byte) error {
	parts, err := fieldsOf(model)
	if err != nil {
		return err
	}
	trainer, err := fieldsOf(parts[2].bytes)
	if err != nil {
		return err
	}
	normalizer, err := fieldsOf(parts[3].bytes)
	if err != nil {
		return err
	}
	const bpe = 2
	off := func(number protowire.Number) bool { return normalizer[number].set && normalizer[number].number == 0 } // on by default
	if trainer[3].number != bpe || trainer[35].number == 0 || trainer[24].number != 0 {
		return fmt.Errorf("it is not a BPE with byte_fallback, or has treat_whitespace_as_suffix: go-sentencepiece v0.7.0 does not do that")
	}
	if !off(3) || !off(4) || off(5) || len(normalizer[2].bytes) > 0 {
		return fmt.Errorf("its normalizer changes texts (%s): expected the rule identity, without add_dummy_prefix and remove_extra_whitespaces", listed.Quoted(string(normalizer[1].bytes)))
	}
	return nil
}

type field struct {
	set    bool
	number uint64
	bytes  []byte
}

// fieldsOf returns each number's last field.
func fieldsOf(message []byte) (map[protowire.Number]field, error) {
	fields := map[protowire.Number]field{}
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		message = message[n:]
		f := field{set: true}
		switch kind {
		case protowire.VarintType:
			f.number, n = protowire.ConsumeVarint(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		message, fields[number] = message[n:], f
	}
	return fields, nil
}

func (t *sentencePiece) Encode(s string) (ids []int32, err error) {
	if !utf8.ValidString(s) {
		return nil, fmt.Errorf("huggingface: the text is not valid UTF-8")
	}
	if s == "" {
		return nil, nil
	}
	err = shield.Do(func() error {
		for _, token := range t.processor.Encode(s) {
			ids = append(ids, int32(token.ID))
		}
		return nil
	})
	return ids, err
}

func (t *sentencePiece) Decode(ids []int32) (out string, err error) {
	list := make([]int, len(ids))
	for i, id := range ids {
		if id < 0 || int(id) >= t.size {
			return "", fmt.Errorf("huggingface: token %d of %d is %d, expected a number from 0 to %d", i+1, len(ids), id, t.size-1)
		}
		list[i] = int(id)
	}
	err = shield.Do(func() error { out = t.processor.Decode(list); return nil })
	return out, err
}

func (t *sentencePiece) Size() int { return t.size }
