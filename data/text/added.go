package text

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

type addedToken struct {
	ID         int32  `json:"id" exact:"required"`
	Content    string `json:"content" exact:"required"`
	SingleWord bool   `json:"single_word" exact:"required"`
	LStrip     bool   `json:"lstrip" exact:"required"`
	RStrip     bool   `json:"rstrip" exact:"required"`
	Normalized bool   `json:"normalized" exact:"required"`
	Special    bool   `json:"special" exact:"required"`
	matched    string
}

type added struct {
	all    []addedToken
	rounds [2]*trie
}

func (t *Tokenizer) addTokens(list []addedToken) error {
	t.specials = map[string]bool{}
	rounds, steps := [2]map[string]int32{{}, {}}, stepsAnyway
	next, byContent := int32(len(t.vocabulary.ids)), map[string]int32{}
	for i := range list {
		a := &list[i]
		if a.Content == "" || len(a.Content) > longestName {
			return fmt.Errorf("the added token %d has %d bytes, expected 1 to %d", a.ID, len(a.Content), longestName)
		}
		id, known := t.vocabulary.ids[a.Content]
		if !known {
			id = next
			next++
		}
		if _, twice := byContent[a.Content]; twice {
			return fmt.Errorf("the added token %s appears twice", quoted(a.Content))
		}
		if id != a.ID || t.addedNames[id] != nil {
			return fmt.Errorf("the added token %s has the number %d, and tokenizers gives it %d", quoted(a.Content), a.ID, id)
		}
		if id >= mostTokens {
			return fmt.Errorf("there are more than %d tokens", mostTokens)
		}
		byContent[a.Content] = id
		a.matched = a.Content
		round := 0
		if a.Normalized {
			round = 1
			if t.normalize != nil {
				p := span{s: a.Content, id: -1, steps: &steps}
				if err := t.normalize(&p, false); err != nil {
					return err
				}
				a.matched = p.s
			}
		}
		if _, twice := rounds[round][a.matched]; twice || a.matched == "" {
			return fmt.Errorf("the added token %s is normalized to %s, as another is, or to nothing", quoted(a.Content), quoted(a.matched))
		}
		rounds[round][a.matched] = int32(i)
		t.addedNames[id] = a
		if a.Special {
			t.specials[a.Content] = true
		}
	}
	t.added.all = list
	for i, r := range rounds {
		if len(r) > 0 {
			t.added.rounds[i] = newTrie(r)
		}
	}
	return nil
}

func (a *added) divide(round int, p *span, ordinary bool, out []span) []span {
	t := a.rounds[round]
	if t == nil {
		return append(out, p.slice(0, len(p.s)))
	}
	begin := 0
	for i := 0; i < len(p.s); {
		if t.first[p.s[i]] == t.first[int(p.s[i])+1] {
			i++
			continue
		}
		n, of := 0, int32(0)
		t.prefixes(p.s[i:], func(length int, place int32) { n, of = length, place })
		if n == 0 {
			i++
			continue
		}
		token := a.all[of]
		from, to := i, i+n
		i = to
		if ordinary && token.Special {
			continue
		}
		if token.SingleWord {
			before, _ := utf8.DecodeLastRuneInString(p.s[:from])
			after, _ := utf8.DecodeRuneInString(p.s[to:])
			if from > 0 && characters().is(before, wordRust) || to < len(p.s) && characters().is(after, wordRust) {
				continue
			}
		}
		if token.LStrip {
			from = max(len(strings.TrimRightFunc(p.s[:from], isSpace)), begin)
		}
		if token.RStrip {
			to = len(p.s) - len(strings.TrimLeftFunc(p.s[to:], isSpace))
		}
		if begin < from {
			out = append(out, p.slice(begin, from))
		}
		s := p.slice(from, to)
		s.id = token.ID
		out = append(out, s)
		begin = to
	}
	if begin < len(p.s) {
		out = append(out, p.slice(begin, len(p.s)))
	}
	return out
}
