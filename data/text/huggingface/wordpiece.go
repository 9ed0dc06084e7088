package huggingface

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gomlx/go-huggingface/tokenizers/hftokenizer"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/listed"
	"github.com/lazo-ml/lazo/internal/shield"
)

type wordPiece struct {
	tokens  *hftokenizer.Tokenizer
	names   []string
	added   map[string]bool
	longest int
	prefix  string
	cleanup bool
}

type wordPieceFile struct {
	Version     string                   `json:"version"`
	Truncation  any                      `json:"truncation"`
	Padding     any                      `json:"padding"`
	AddedTokens []hftokenizer.AddedToken `json:"added_tokens"`
	Normalizer  struct {
		Type               string `json:"type"`
		CleanText          bool   `json:"clean_text"`
		HandleChineseChars bool   `json:"handle_chinese_chars"`
		StripAccents       any    `json:"strip_accents"`
		Lowercase          bool   `json:"lowercase"`
	} `json:"normalizer"`
	PreTokenizer struct {
		Type string `json:"type"`
	} `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       struct {
		Type    string `json:"type"`
		Prefix  string `json:"prefix"`
		Cleanup bool   `json:"cleanup"`
	} `json:"decoder"`
	Model struct {
		Type    string         `json:"type"`
		Unknown string         `json:"unk_token"`
		Prefix  string         `json:"continuing_subword_prefix"`
		Longest int            `json:"max_input_chars_per_word"`
		Vocab   map[string]int `json:"vocab"`
	} `json:"model"`
}

// parseWordPiece accepts what go-huggingface does correctly.
func parseWordPiece(content []byte) (text.Tokenizer, error) {
	var f wordPieceFile
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("huggingface: tokenizer.json with word-piece: %w", err)
	}
	w := &wordPiece{added: map[string]bool{}, longest: f.Model.Longest, prefix: f.Decoder.Prefix, cleanup: f.Decoder.Cleanup}
	if err := w.check(f); err != nil {
		return nil, fmt.Errorf("huggingface: tokenizer.json with word-piece: %w", err)
	}
	err := shield.Do(func() (err error) {
		w.tokens, err = hftokenizer.NewFromContent(nil, content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("huggingface: %w", err)
	}
	return w, nil
}

const longestWord = 1000

func (w *wordPiece) check(f wordPieceFile) error {
	if n := f.Normalizer; n.Type != "BertNormalizer" || !n.CleanText || !n.HandleChineseChars || n.StripAccents != nil {
		return fmt.Errorf("its normalizer is %s, expected BertNormalizer with clean_text and handle_chinese_chars, and no choice of strip_accents", listed.Quoted(fmt.Sprintf("%+v", n)))
	}
	if f.PreTokenizer.Type != "BertPreTokenizer" || f.Decoder.Type != "WordPiece" || f.Decoder.Prefix != f.Model.Prefix || f.Model.Prefix == "" || f.Model.Longest < 1 {
		return fmt.Errorf("its pre_tokenizer is %s, its decoder %s, the prefix of the model %s and its longest word %d, expected BertPreTokenizer, WordPiece, one prefix, and 1 or more",
			listed.Quoted(f.PreTokenizer.Type), listed.Quoted(fmt.Sprintf("%+v", f.Decoder)), listed.Quoted(f.Model.Prefix), f.Model.Longest)
	}
	if f.Model.Longest > longestWord { // words take the third power of their length
		return fmt.Errorf("its max_input_chars_per_word is %d, expected at most %d", f.Model.Longest, longestWord)
	}
	if f.Truncation != nil || f.Padding != nil {
		return fmt.Errorf("it has truncation or padding, expected none")
	}
	if err := checkPostProcessor(f.PostProcessor); err != nil {
		return err
	}
	ids := map[string]int{}
	for name, id := range f.Model.Vocab {
		ids[name] = id
	}
	if _, ok := ids[f.Model.Unknown]; !ok {
		return fmt.Errorf("its unknown token %s is not in the vocabulary", listed.Quoted(f.Model.Unknown))
	}
	for _, a := range f.AddedTokens {
		id, known := ids[a.Content]
		switch {
		case a.SingleWord || a.Lstrip || a.Rstrip || a.Normalized || a.Content == "" || !strings.ContainsAny(a.Content[:1], "[<{(|"):
			return fmt.Errorf("the added token %s is taken out of texts in another way, expected one in brackets, without options", listed.Quoted(fmt.Sprintf("%+v", a)))
		case known && id != a.ID:
			return fmt.Errorf("the added token %s has the number %d, and %d in the vocabulary", listed.Quoted(a.Content), a.ID, id)
		case (a.Content == "[UNK]" || a.Content == "<unk>") && a.Content != f.Model.Unknown:
			return fmt.Errorf("the added token %s is in the list in addition to the unknown token %s", listed.Quoted(a.Content), listed.Quoted(f.Model.Unknown))
		}
		ids[a.Content], w.added[a.Content] = a.ID, true
	}
	w.names = make([]string, len(ids))
	taken := make([]bool, len(ids))
	for name, id := range ids {
		if id < 0 || id >= len(ids) || taken[id] {
			return fmt.Errorf("%s has the number %d, expected each from 0 to %d once", listed.Quoted(name), id, len(ids)-1)
		}
		w.names[id], taken[id] = name, true
	}
	return nil
}

// checkPostProcessor accepts special tokens around one text.
func checkPostProcessor(part json.RawMessage) error {
	if len(part) == 0 || string(part) == "null" {
		return nil
	}
	var p hftokenizer.PostProcessor
	if err := json.Unmarshal(part, &p); err != nil {
		return err
	}
	if p.Type == "BertProcessing" {
		return nil
	}
	texts := 0
	for _, item := range p.Single {
		if item.Sequence != nil {
			texts++
		} else if item.SpecialToken == nil || len(p.SpecialTokens[item.SpecialToken.ID].IDs) == 0 {
			texts = 2
		}
	}
	if p.Type != "TemplateProcessing" || texts != 1 {
		return fmt.Errorf("its post_processor is %.200s, expected BertProcessing, or TemplateProcessing with tokens around one text", part)
	}
	return nil
}

//go:embed characters.txt
var characters string

// others are ranges that go-huggingface v0.4.0 classifies differently from tokenizers.
var others = func() (ranges [][2]rune) {
	for line := range strings.Lines(characters) {
		var r [2]rune
		if _, err := fmt.Sscanf(line, "%x-%x", &r[0], &r[1]); err == nil {
			ranges = append(ranges, r)
		}
	}
	return ranges
}()

func takenOtherwise(r rune) bool {
	i := sort.Search(len(others), func(i int) bool { return others[i][1] >= r })
	return i < len(others) && others[i][0] <= r
}

func (w *wordPiece) checkText(s string) error {
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return fmt.Errorf("huggingface: the text is not valid UTF-8 at byte %d: Hugging Face's tokenizers has no ids for it", i)
		}
		if r >= utf8.RuneSelf && takenOtherwise(r) {
			return fmt.Errorf("huggingface: the text has %U at byte %d, which go-huggingface v0.4.0 treats differently from tokenizers: remove it from the text", r, i)
		}
	}
	begin, runes := 0, 0
	normal := w.tokens.Normalize(s)
	for i, r := range normal + " " { // go-huggingface counts a word's bytes, tokenizers its characters
		if unicode.IsSpace(r) || unicode.IsPunct(r) || r < utf8.RuneSelf && unicode.IsSymbol(r) {
			if n := i - begin; n > w.longest && runes != n {
				return fmt.Errorf("huggingface: the word %s has %d bytes: of words with letters beyond ASCII go-huggingface v0.4.0 splits only those of up to %d bytes as tokenizers does",
					listed.Quoted(normal[begin:i]), n, w.longest)
			}
			begin, runes = i+utf8.RuneLen(r), 0
			continue
		}
		runes++
	}
	return nil
}

func (w *wordPiece) Encode(s string) (ids []int32, err error) {
	err = shield.Do(func() error {
		if err := w.checkText(s); err != nil {
			return err
		}
		for _, id := range w.tokens.Encode(s) {
			ids = append(ids, int32(id))
		}
		return nil
	})
	return ids, err
}

// The decoder's cleanup joins endings to the previous word.
var endings = strings.NewReplacer(" .", ".", " ?", "?", " !", "!", " ,", ",", " ' ", "'", " n't", "n't", " 'm", "'m", " do not", " don't", " 's", "'s", " 've", "'ve", " 're", "'re")

// Decode returns the text as tokenizers does, without the original's case and spacing.
func (w *wordPiece) Decode(ids []int32) (string, error) {
	var out strings.Builder
	for i, id := range ids {
		if id < 0 || int(id) >= len(w.names) {
			return "", fmt.Errorf("huggingface: token %d of %d is %d, expected a number from 0 to %d", i+1, len(ids), id, len(w.names)-1)
		}
		name := w.names[id]
		if rest, ok := strings.CutPrefix(name, w.prefix); ok && i > 0 {
			name = rest
		} else if i > 0 {
			name = " " + name
		}
		if w.cleanup {
			name = endings.Replace(name)
		}
		out.WriteString(name)
	}
	return out.String(), nil
}

func (w *wordPiece) Size() int { return len(w.names) }
