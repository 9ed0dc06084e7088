package tables_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/data/text"
)

// The ids and words are those of Keras' TextVectorization (testdata/texts.py), also after saving.
func TestTexts_equalKeras(t *testing.T) {
	file, err := os.ReadFile("testdata/texts.json")
	require.NoError(t, err)
	var want struct {
		Texts []string
		N     int
		Cases []struct {
			Settings tables.Texts
			Words    []string
			IDs      [][]int32
		}
	}
	require.NoError(t, json.Unmarshal(file, &want))
	require.Len(t, want.Cases, 4)
	for _, c := range want.Cases {
		c.Settings.Column = "text"
		p, err := tables.Fit(textTable(t, want.Texts[:want.N]...), c.Settings)
		require.NoError(t, err, "%+v", c.Settings)
		words, err := p.Classes("x")
		require.NoError(t, err)
		require.Equal(t, c.Words, words)
		set, err := textTable(t, want.Texts...).Map(saved(t, p).Apply)
		require.NoError(t, err)
		x, err := set.Field("x")
		require.NoError(t, err)
		require.Equal(t, []int{len(want.Texts), c.Settings.Length}, x.Dims)
		for i, ids := range c.IDs {
			require.Equal(t, ids, x.Slice(i, i+1).Flat, "%q by %+v", want.Texts[i], c.Settings)
		}
	}
}

func trained(t *testing.T, special ...string) *text.Tokenizer {
	tokens, err := text.BPETraining{Size: 300, Special: special}.Train(data.Items([]string{"the soup was good", "the tea was not good"}))
	require.NoError(t, err)
	return tokens
}

func TestTexts_takeATokenizerAlong(t *testing.T) {
	tokens := trained(t, "<end>", "<pad>")
	table := textTable(t, "The soup was GOOD", "the tea", "")
	p, err := tables.Fit(table, tables.Texts{Column: "text", Lower: true, Tokenizer: tokens, Padding: "<pad>"})
	require.NoError(t, err)
	var want []int32
	longest := 0
	encoded := make([][]int32, 3)
	for i, s := range []string{"the soup was good", "the tea", ""} {
		encoded[i], err = tokens.EncodeOrdinary(s)
		require.NoError(t, err)
		longest = max(longest, len(encoded[i]))
	}
	for _, ids := range encoded {
		for i := range longest {
			if want = append(want, 1); i < len(ids) {
				want[len(want)-1] = ids[i]
			}
		}
	}
	for _, p := range []*tables.Preparation{p, saved(t, p)} {
		set, err := textTable(t, "The soup was GOOD", "the tea", "").Map(p.Inputs)
		require.NoError(t, err)
		x, err := set.Field("x")
		require.NoError(t, err)
		require.Equal(t, data.Array{Flat: want, Dims: []int{3, longest}}, x)
		names, err := p.Classes("x")
		require.NoError(t, err)
		require.Len(t, names, tokens.Size())
		require.Equal(t, "<pad>", names[1])
	}
	// A special token in a text is text.
	set, err := textTable(t, "<end>").Map(p.Inputs)
	require.NoError(t, err)
	x, err := set.Field("x")
	require.NoError(t, err)
	require.NotContains(t, x.Flat, int32(0))
}

func TestTexts_cutLongTextsOnlyIfAsked(t *testing.T) {
	table := textTable(t, "one two three")
	p, err := tables.Fit(table, tables.Texts{Column: "text"})
	require.NoError(t, err)
	_, err = textTable(t, "one", "one two three four").Map(p.Inputs)
	require.ErrorContains(t, err, `column "text": row 2: the text has 4 tokens, expected at most 3: set Texts.Length, or Texts.Cut`)
	_, err = tables.Fit(table, tables.Texts{Column: "text", Length: 2})
	require.ErrorContains(t, err, "row 1: the text has 3 tokens, expected at most 2")
	for _, tokens := range []*text.Tokenizer{nil, trained(t, "<pad>")} {
		rule := tables.Texts{Column: "text", Length: 2, Cut: true, Tokenizer: tokens}
		if tokens != nil {
			rule.Padding = "<pad>"
		}
		p, err = tables.Fit(table, rule)
		require.NoError(t, err)
		set, err := textTable(t, "one two three").Map(p.Inputs)
		require.NoError(t, err)
		x, err := set.Field("x")
		require.NoError(t, err)
		require.Equal(t, []int{1, 2}, x.Dims)
	}
}

func TestTexts_refuseSettingsThatContradict(t *testing.T) {
	table, err := data.New(data.Named("text", []string{"a b"}, 1), data.Named("n", []float32{1}, 1), data.Named("empty", []string{"!"}, 1))
	require.NoError(t, err)
	for want, rule := range map[string]tables.Texts{
		"the Column is empty":                      {},
		"the Size is 2 and the Length 0":           {Column: "text", Size: 2},
		"Padding is set without a Tokenizer":       {Column: "text", Padding: "<pad>"},
		"the Size with one":                        {Column: "text", Tokenizer: trained(t), Size: 9},
		"Cut needs a Length":                       {Column: "text", Cut: true},
		`the form is "x"`:                          {Column: "text", Form: "x"},
		`has no token "of the role \"pad\"" for`:   {Column: "text", Tokenizer: trained(t)},
		`has no token "[PAD]" for padding`:         {Column: "text", Tokenizer: trained(t), Padding: "[PAD]"},
		`column "n": it is float32`:                {Column: "n"},
		`column "empty": the 1 texts have no`:      {Column: "empty"},
		"a length of 100000 tokens, expected 1 to": {Column: "text", Length: 100_000},
	} {
		_, err := tables.Fit(table, rule)
		require.ErrorContains(t, err, want)
	}
	_, err = tables.Fit(table, tables.Texts{Column: "text"}, tables.Texts{Column: "empty", Tokenizer: trained(t, "<pad>"), Padding: "<pad>"})
	require.ErrorContains(t, err, `expected fields of their own for integers and for token ids`)
}

// A layer of embeddings takes [n, 1].
func TestTexts_ofOneTokenKeepTheirAxis(t *testing.T) {
	p, err := tables.Fit(textTable(t, "soup", "tea"), tables.Texts{Column: "text"})
	require.NoError(t, err)
	set, err := textTable(t, "tea").Map(p.Inputs)
	require.NoError(t, err)
	x, err := set.Field("x")
	require.NoError(t, err)
	require.Equal(t, data.Array{Flat: []int32{2}, Dims: []int{1, 1}}, x)
}
