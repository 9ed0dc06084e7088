package huggingface

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/listed"
)

// Open reads a folder's tokenizer.json, or if there is none, its tokenizer.model.
func Open(folder string) (text.Tokenizer, error) {
	content, err := os.ReadFile(filepath.Join(folder, "tokenizer.json"))
	if err == nil {
		return parse(content)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("huggingface: %w", err)
	}
	model, err := os.ReadFile(filepath.Join(folder, "tokenizer.model"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("huggingface: %s has no tokenizer.json and no tokenizer.model: %w", folder, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("huggingface: %w", err)
	}
	return parseSentencePiece(model)
}

func parse(content []byte) (text.Tokenizer, error) {
	var head struct{ Model struct{ Type string } }
	if err := json.Unmarshal(content, &head); err != nil {
		return nil, fmt.Errorf("huggingface: tokenizer.json: %w", err)
	}
	switch head.Model.Type {
	case "WordPiece":
		return parseWordPiece(content)
	case "BPE", "":
		bpe := &text.BPE{}
		if err := json.Unmarshal(content, bpe); err != nil {
			return nil, fmt.Errorf("huggingface: %w", err)
		}
		return bpe, nil
	}
	return nil, fmt.Errorf("huggingface: tokenizer.json: its model is %s, expected BPE or WordPiece: go-huggingface v0.4.0 gives other ids than tokenizers for others",
		listed.Quoted(head.Model.Type))
}
