package tables

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
)

// Terms counts the terms of a column of texts: a column for each in a float32 field [n, …], with the numbers of
// scikit-learn's CountVectorizer or, with IDF and Norm 2, TfidfVectorizer. Terms are words of two or more letters,
// digits and underscores. A missing text is empty.
type Terms struct {
	Column string
	// Field is the field's name, "x" if "".
	Field string
	// Form, Lower and StripAccents are those of [text.Normalization].
	Form                string
	Lower, StripAccents bool
	// NGrams are the least and the greatest number of words in a term, {1, 1} if zero.
	NGrams [2]int
	// Characters takes n-grams of characters, WithinWords those of each word between spaces, as scikit-learn's
	// char_wb.
	Characters, WithinWords bool
	// Stop are words to leave out.
	Stop []string
	// MinTexts and MaxTexts leave terms out that are in fewer or more training texts: a number of them, or a share if
	// MinTexts is below 1, and MaxTexts at most 1. 0 is no limit.
	MinTexts, MaxTexts float64
	// MaxTerms keeps the most frequent ones; 0 is no limit.
	MaxTerms int
	// Binary counts a term once for each text. Sublinear replaces a count by 1 + its logarithm.
	Binary, Sublinear bool
	// IDF multiplies by 1 + log((1 + texts) / (1 + texts with the term)), or with Unsmoothed without both "1 +" in it.
	IDF, Unsmoothed bool
	// Norm divides each text's numbers by their sum, 1, or Euclidean norm, 2; 0 for none.
	Norm int
}

const asTerms = "terms"

func (t Terms) rule() ([]string, string, error) {
	share := func(v, whole float64) bool { return v >= 0 && (v < whole || v == math.Trunc(v) && v <= math.MaxInt32) }
	switch {
	case t.Column == "":
		return nil, "", errors.New("the Column is empty, expected the name of a column of texts")
	case !share(t.MinTexts, 1) || !share(t.MaxTexts, 1):
		return nil, "", fmt.Errorf("MinTexts is %v and MaxTexts %v: expected numbers of texts, or shares below 1", t.MinTexts, t.MaxTexts)
	case t.MaxTerms < 0:
		return nil, "", fmt.Errorf("MaxTerms is %d, expected 0 or more", t.MaxTerms)
	case t.Unsmoothed && !t.IDF:
		return nil, "", errors.New("the setting Unsmoothed is for IDF, which is not set")
	}
	c, err := t.empty()
	return c.taken(), c.Field, err
}

func (t Terms) empty() (*terms, error) {
	c := &terms{source: source{Column: t.Column, Field: cmp.Or(t.Field, "x"), As: asTerms},
		Normalization: text.Normalization{Form: t.Form, Lower: t.Lower, StripAccents: t.StripAccents},
		NGrams:        t.NGrams, Characters: t.Characters, WithinWords: t.WithinWords, Stop: slices.Clone(t.Stop),
		Binary: t.Binary, Sublinear: t.Sublinear, Norm: t.Norm}
	if c.NGrams == [2]int{} {
		c.NGrams = [2]int{1, 1}
	}
	return c, c.checkSettings()
}

type found struct{ count, texts, last int }

func (t Terms) fit(names []string, columns []data.Array) ([]prepared, error) {
	c, err := t.empty()
	if err != nil {
		return nil, err
	}
	all, err := plainTexts(columns[0])
	if err != nil {
		return nil, fmt.Errorf("column %q: %w", names[0], err)
	}
	of := map[string]*found{}
	for i, one := range all {
		if err := c.each(one, func(term []byte) {
			f := of[string(term)]
			if f == nil {
				f = &found{last: -1}
				of[string(term)] = f
			}
			if f.count++; f.last != i {
				f.texts, f.last = f.texts+1, i
			}
		}); err != nil {
			return nil, fmt.Errorf("column %q: %w", names[0], rowError(i, "%w", err))
		}
	}
	least, most := t.MinTexts, t.MaxTexts
	if least < 1 {
		least *= float64(len(all))
	}
	if most <= 1 {
		most *= float64(len(all))
	}
	if t.MaxTexts == 0 {
		most = math.Inf(1)
	}
	before := len(of)
	maps.DeleteFunc(of, func(_ string, f *found) bool { return float64(f.texts) < least || float64(f.texts) > most })
	c.Terms = slices.Sorted(maps.Keys(of))
	if t.MaxTerms > 0 && len(c.Terms) > t.MaxTerms {
		slices.SortStableFunc(c.Terms, func(a, b string) int {
			if t.Binary {
				return of[b].texts - of[a].texts
			}
			return of[b].count - of[a].count
		})
		c.Terms = c.Terms[:t.MaxTerms]
		slices.Sort(c.Terms)
	}
	switch {
	case before == 0:
		return nil, fmt.Errorf("column %q: the %d texts have no terms, perhaps only stop words", names[0], len(all))
	case len(c.Terms) == 0:
		return nil, fmt.Errorf("column %q: MinTexts and MaxTexts leave out all %d terms", names[0], before)
	case len(c.Terms) > mostWide:
		return nil, fmt.Errorf("column %q: there are %d terms, and each is a column: expected at most %d: set Terms.MaxTerms, or a greater MinTexts: %w", names[0], len(c.Terms), mostWide, data.ErrLimit)
	}
	if t.IDF {
		smooth := 1.0
		if t.Unsmoothed {
			smooth = 0
		}
		for _, term := range c.Terms {
			c.IDF = append(c.IDF, math.Log((smooth+float64(len(all)))/(smooth+float64(of[term].texts)))+1)
		}
	}
	return []prepared{c}, nil
}

type terms struct {
	source
	text.Normalization
	NGrams      [2]int    `json:"ngrams"`
	Characters  bool      `json:"characters,omitempty"`
	WithinWords bool      `json:"within_words,omitempty"`
	Stop        []string  `json:"stop,omitempty"`
	Binary      bool      `json:"binary,omitempty"`
	Sublinear   bool      `json:"sublinear,omitempty"`
	Norm        int       `json:"norm,omitempty"`
	Terms       []string  `json:"terms"`
	IDF         []float64 `json:"idf,omitempty"`

	ids  map[string]int
	stop map[string]bool
}

func (c *terms) width() int { return len(c.Terms) }

func (c *terms) names() []string {
	names := make([]string, len(c.Terms))
	for i, term := range c.Terms {
		names[i] = c.Column + ": " + term
	}
	return names
}

const mostNGrams = 100

func (c *terms) checkSettings() error {
	if _, err := c.Apply(""); err != nil {
		return err
	}
	switch least, most := c.NGrams[0], c.NGrams[1]; {
	case least < 1 || most < least || most > mostNGrams:
		return fmt.Errorf("NGrams is %v, expected the least number and the greatest, from 1 to %d", c.NGrams, mostNGrams)
	case c.Norm < 0 || c.Norm > 2:
		return fmt.Errorf("the Norm is %d, expected 0, 1 or 2", c.Norm)
	case c.WithinWords && !c.Characters:
		return errors.New("the setting WithinWords is for Characters, which is not set")
	case c.Characters && len(c.Stop) > 0:
		return errors.New("the Stop has words, but Characters takes n-grams of characters: expected one of them")
	}
	c.stop = make(map[string]bool, len(c.Stop))
	for _, word := range c.Stop {
		c.stop[word] = true
	}
	return nil
}

func (c *terms) check() error {
	if err := c.checkSettings(); err != nil {
		return err
	}
	switch {
	case len(c.Terms) == 0 || len(c.Terms) > mostWide:
		return fmt.Errorf("%d terms, expected 1 to %d: %w", len(c.Terms), mostWide, data.ErrLimit)
	case c.IDF != nil && len(c.IDF) != len(c.Terms):
		return fmt.Errorf("%d values of IDF for %d terms", len(c.IDF), len(c.Terms))
	case slices.ContainsFunc(c.IDF, func(v float64) bool { return !(v > 0 && v <= math.MaxFloat32) }):
		return errors.New("a value of IDF is not positive, or too large")
	}
	c.ids = make(map[string]int, len(c.Terms))
	for i, term := range c.Terms {
		c.ids[term] = i
	}
	if len(c.ids) < len(c.Terms) {
		return fmt.Errorf("%d of %d terms are listed twice", len(c.Terms)-len(c.ids), len(c.Terms))
	}
	return nil
}

func (c *terms) convert(columns []data.Array, to cells) error {
	all, err := plainTexts(columns[0])
	if err != nil {
		return err
	}
	counts := make([]float64, len(c.Terms))
	var seen []int
	for row, one := range all {
		seen = seen[:0]
		if err := c.each(one, func(term []byte) {
			id, known := c.ids[string(term)]
			if !known {
				return
			}
			if counts[id] == 0 {
				seen = append(seen, id)
			}
			counts[id]++
		}); err != nil {
			return rowError(row, "%w", err)
		}
		sum := 0.0
		for _, id := range seen {
			v := counts[id]
			if c.Binary {
				v = 1
			}
			if c.Sublinear {
				v = math.Log(v) + 1
			}
			if c.IDF != nil {
				v *= c.IDF[id]
			}
			if counts[id] = v; c.Norm == 2 {
				v *= v
			}
			sum += v
		}
		divide := 1.0
		switch c.Norm {
		case 1:
			divide = sum
		case 2:
			divide = math.Sqrt(sum)
		}
		for _, id := range seen {
			to.numbers[row*to.stride+id] = float32(counts[id] / divide)
			counts[id] = 0
		}
	}
	return nil
}

// each calls f for each term. f must not keep it.
func (c *terms) each(one string, f func(term []byte)) error {
	one, err := c.Apply(one)
	if err != nil {
		return err
	}
	var term []byte
	switch {
	case c.Characters && c.WithinWords:
		for _, word := range strings.FieldsFunc(one, isSpace) {
			c.characters(" "+word+" ", true, func(s string) {
				term = append(term[:0], s...)
				f(term)
			})
		}
	case c.Characters:
		c.characters(oneSpace(one), false, func(s string) {
			term = append(term[:0], s...)
			f(term)
		})
	default:
		words := text.Words(one)
		words = slices.DeleteFunc(words, func(w string) bool { return utf8.RuneCountInString(w) < 2 || c.stop[w] })
		for n := c.NGrams[0]; n <= min(c.NGrams[1], len(words)); n++ {
			for i := range len(words) - n + 1 {
				term = term[:0]
				for k, word := range words[i : i+n] {
					if k > 0 {
						term = append(term, ' ')
					}
					term = append(term, word...)
				}
				f(term)
			}
		}
	}
	return nil
}

// characters takes a word that is shorter than an n-gram as one.
func (c *terms) characters(s string, word bool, f func(string)) {
	at := make([]int, 0, len(s)+1)
	for i := range s {
		at = append(at, i)
	}
	length := len(at)
	at = append(at, len(s))
	for n := c.NGrams[0]; n <= c.NGrams[1]; n++ {
		for i := range length - n + 1 {
			f(s[at[i]:at[i+n]])
		}
		if n >= length {
			if n > length && word {
				f(s)
			}
			return
		}
	}
}

// isSpace is Python's \s.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

func oneSpace(s string) string {
	var out strings.Builder
	for s != "" {
		i := strings.IndexFunc(s, isSpace)
		if i < 0 {
			i = len(s)
		}
		out.WriteString(s[:i])
		rest := strings.TrimLeftFunc(s[i:], isSpace)
		spaces := s[i : len(s)-len(rest)]
		if utf8.RuneCountInString(spaces) > 1 {
			spaces = " "
		}
		out.WriteString(spaces)
		s = rest
	}
	return out.String()
}

func plainTexts(a data.Array) ([]string, error) {
	texts, ok := a.Flat.([]string)
	if !ok {
		return nil, fmt.Errorf("it is %s, expected texts", a.DType())
	}
	return texts, nil
}
