package tables_test

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
)

func textTable(t *testing.T, texts ...string) *data.Set {
	set, err := data.New(data.Named("text", texts, len(texts)))
	require.NoError(t, err)
	return set
}

// saved is the preparation after a way through JSON.
func saved(t *testing.T, p *tables.Preparation) *tables.Preparation {
	file, err := json.Marshal(p)
	require.NoError(t, err)
	read := new(tables.Preparation)
	require.NoError(t, json.Unmarshal(file, read))
	return read
}

// The numbers are scikit-learn's (testdata/terms.py), also after saving, and by each way to prepare.
func TestTerms_equalScikitLearn(t *testing.T) {
	file, err := os.ReadFile("testdata/terms.json")
	require.NoError(t, err)
	var want struct {
		Texts []string
		N     int
		Cases []struct {
			Settings tables.Terms
			Terms    []string
			Rows     []map[int]float64
		}
	}
	require.NoError(t, json.Unmarshal(file, &want))
	require.Len(t, want.Cases, 13)
	for _, c := range want.Cases {
		c.Settings.Column = "text"
		p, err := tables.Fit(textTable(t, want.Texts[:want.N]...), c.Settings)
		require.NoError(t, err, "%+v", c.Settings)
		names, err := p.Names("x")
		require.NoError(t, err)
		for i := range names {
			names[i] = strings.TrimPrefix(names[i], "text: ")
		}
		require.Equal(t, c.Terms, names, "%+v", c.Settings)
		table := textTable(t, want.Texts...)
		set, err := table.Map(saved(t, p).Apply)
		require.NoError(t, err)
		x, err := set.Field("x")
		require.NoError(t, err)
		require.Equal(t, []int{len(want.Texts), len(c.Terms)}, x.Dims)
		for i, v := range x.Flat.([]float32) {
			of := want.Texts[i/len(c.Terms)]
			require.InDelta(t, c.Rows[i/len(c.Terms)][i%len(c.Terms)], v, 1e-6*max(1, math.Abs(float64(v))), "%q in %q by %+v", c.Terms[i%len(c.Terms)], of, c.Settings)
		}
		one, err := textTable(t, want.Texts[3]).Map(p.Inputs)
		require.NoError(t, err)
		row, err := one.Field("x")
		require.NoError(t, err)
		require.Equal(t, x.Slice(3, 4), row)
	}
}

func TestTerms_refuseSettingsThatContradict(t *testing.T) {
	table := textTable(t, "the soup was good", "The tea")
	for want, rule := range map[string]tables.Terms{
		"the Column is empty":                             {},
		"NGrams is [2 1]":                                 {Column: "text", NGrams: [2]int{2, 1}},
		"MinTexts is 1.5 and MaxTexts 0":                  {Column: "text", MinTexts: 1.5},
		"MaxTerms is -1":                                  {Column: "text", MaxTerms: -1},
		"Unsmoothed is for IDF, which is not set":         {Column: "text", Unsmoothed: true},
		"Norm is 3":                                       {Column: "text", Norm: 3},
		"WithinWords is for Characters, which is not set": {Column: "text", WithinWords: true},
		"Stop has words, but Characters":                  {Column: "text", Characters: true, Stop: []string{"the"}},
		`the form is "nfc"`:                               {Column: "text", Form: "nfc"},
		"MinTexts and MaxTexts leave out all 6 terms":     {Column: "text", MinTexts: 3},
		"the 2 texts have no terms":                       {Column: "text", Stop: []string{"the", "The", "soup", "was", "good", "tea"}},
		`no column "texts"`:                               {Column: "texts"},
	} {
		_, err := tables.Fit(table, rule)
		require.ErrorContains(t, err, want)
	}
	numbers, err := data.New(data.Named("text", []float32{1}, 1))
	require.NoError(t, err)
	_, err = tables.Fit(numbers, tables.Terms{Column: "text"})
	require.ErrorContains(t, err, `column "text": it is float32, expected texts`)
}

// Each term is a column in memory.
func TestTerms_haveALimit(t *testing.T) {
	words := map[string]bool{}
	for i := range 1<<16 + 1 {
		words["w"+strings.Repeat("x", i%7)+string(rune(0x4e00+i/7))] = true
	}
	var text strings.Builder
	for w := range maps.Keys(words) {
		text.WriteString(w + " ")
	}
	table := textTable(t, text.String())
	_, err := tables.Fit(table, tables.Terms{Column: "text"})
	require.ErrorIs(t, err, data.ErrLimit)
	require.ErrorContains(t, err, "there are 65537 terms, and each is a column: expected at most 65536: set Terms.MaxTerms")
	_, err = tables.Fit(table, tables.Terms{Column: "text", MaxTerms: 10})
	require.NoError(t, err)
}
