package pretrained_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

// generatorOf opens the model of a fixture.
func generatorOf(t *testing.T, kind string, rows, places int) *pretrained.Generator {
	t.Helper()
	network := opened(t, fixtureOf(t, kind).folder(t, "ForCausalLM")).CausalLM()
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), network.Weights())
	require.NoError(t, err)
	g, err := network.Generator(state, rows, places)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, g.Close())
		require.NoError(t, state.Close())
	})
	return g
}

// written has the pieces of a text.
type written struct {
	ids   []int32
	texts []string
	end   string
}

func generated(t *testing.T, g *pretrained.Generator, prompts [][]int32, of pretrained.Generation) []written {
	t.Helper()
	all := make([]written, len(prompts))
	for p, err := range g.Generate(t.Context(), prompts, of) {
		require.NoError(t, err)
		w := &all[p.Prompt]
		require.Empty(t, w.end, "after its end")
		w.ids, w.texts, w.end = append(w.ids, p.ID), append(w.texts, p.Text), p.End
	}
	for _, w := range all {
		require.NotEmpty(t, w.end)
	}
	return all
}

// Texts are those of transformers, of prompts of several lengths at once.
//
//lazo:norace
func TestGenerate_asThePeer(t *testing.T) {
	var rows []struct {
		Kind              string
		Prompt, Tokens    []int32
		Most              int     `json:"max_new_tokens"`
		RepetitionPenalty float64 `json:"repetition_penalty"`
		Beams             int     `json:"num_beams"`
		LengthPenalty     float64 `json:"length_penalty"`
		EarlyStopping     any     `json:"early_stopping"`
		EOS               []int32 `json:"eos_token_id"`
	}
	content, err := os.ReadFile(filepath.Join("testdata", "generations.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, &rows))
	early := map[any]string{true: "first", "never": "never"}
	generators, searched := map[string]*pretrained.Generator{}, 0
	for len(rows) > 0 {
		first := rows[0]
		g := generators[first.Kind]
		if g == nil {
			g = generatorOf(t, first.Kind, 8, 20)
			generators[first.Kind] = g
		}
		of := pretrained.Generation{Most: first.Most, Stop: first.EOS, Sampling: text.Sampling{Repetition: first.RepetitionPenalty},
			Beams: pretrained.Beams{Count: first.Beams, LengthPenalty: first.LengthPenalty, Early: early[first.EarlyStopping]}}
		var prompts, want [][]int32
		rest := rows[:0:0]
		for _, r := range rows { // those with the same settings, as many as there are rows
			same := r.Kind == first.Kind && r.RepetitionPenalty == first.RepetitionPenalty && r.Beams == first.Beams && r.LengthPenalty == first.LengthPenalty &&
				r.EarlyStopping == first.EarlyStopping && slices.Equal(r.EOS, first.EOS)
			if same && (len(prompts)+1)*max(1, first.Beams) <= 8 {
				prompts, want = append(prompts, r.Prompt), append(want, r.Tokens)
			} else {
				rest = append(rest, r)
			}
		}
		rows = rest
		if first.Beams > 1 {
			searched += len(prompts)
		}
		for i, w := range generated(t, g, prompts, of) {
			require.Equal(t, want[i], w.ids, "%s, %+v, prompt %v", first.Kind, of, prompts[i])
			end := "length"
			if slices.Contains(first.EOS, want[i][len(want[i])-1]) {
				end = "stop"
			}
			require.Equal(t, end, w.end)
		}
	}
	require.Len(t, generators, 8)
	require.Equal(t, 50, searched)
	for kind, g := range generators {
		programs, beams := g.Programs(), 0
		if kind == "llama" || kind == "qwen3" {
			beams = 1
		}
		require.LessOrEqual(t, programs[0], 3, "prompts of up to 8 and 16 tokens, %s", kind)
		require.Equal(t, []int{1, beams}, programs[1:])
	}
}

// A text does not depend on the others: drawn, with texts that end at different times, and up to the last place.
//
//lazo:norace
func TestGenerate_batch(t *testing.T) {
	const places = 12
	g := generatorOf(t, "mistral", 4, places)
	prompts := [][]int32{{20, 30, 40}, {7, 8, 9, 10, 11, 12}, {5}, {33, 44, 55, 6, 7, 8, 9, 10, 11, 12, 13, 14}}
	for _, of := range []pretrained.Generation{
		{},
		{Sampling: text.Sampling{Temperature: 2, TopK: 30, TopP: 0.9, MinP: 0.01, Repetition: 1.2}, Seed: 9},
		{Sampling: text.Sampling{Temperature: 3}, Seed: 9, Stop: []int32{5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55}, Most: 7},
	} {
		all := generated(t, g, prompts, of)
		lengths := map[int]bool{}
		for i, p := range prompts {
			lengths[len(all[i].ids)] = true
			if of.Most == 0 {
				require.Len(t, all[i].ids, places-len(p)+1)
			}
			alone := of
			alone.Seed += uint64(i)
			require.Equal(t, all[i], generated(t, g, [][]int32{p}, alone)[0], "%+v, prompt %d", of, i)
		}
		require.Greater(t, len(lengths), 1)
	}
	require.Equal(t, [3]int{4, 1, 0}, g.Programs(), "prompts of up to 1, 4, 8 and 12 tokens")
	sequence := g.Generate(t.Context(), prompts[:1], pretrained.Generation{Sampling: text.Sampling{Temperature: 3}})
	var twice [2][]int32
	for i := range twice {
		for p, err := range sequence {
			require.NoError(t, err)
			twice[i] = append(twice[i], p.ID)
		}
	}
	require.Equal(t, twice[0], twice[1], "an iterator that runs again begins anew")
}

// Logits of a text have the same bits in each row, with others and alone, if the same programs compute them.
//
//lazo:norace
func TestGenerate_bits(t *testing.T) {
	for _, kind := range []string{"mistral", "qwen3"} {
		g := generatorOf(t, kind, 4, 20)
		prompts := [][]int32{{20, 30, 40, 50, 51}, {7, 8, 9, 10, 11, 12}, {5, 6, 7, 8, 9, 10, 11, 12}, {33, 44, 55, 6, 7, 8, 9}}
		tokens := [][]int32{{9, 8, 7, 6}, {1, 2, 3, 4}, {50, 51, 52, 53}, {3, 3, 3, 3}}
		all, err := g.Logits(t.Context(), prompts, tokens)
		require.NoError(t, err)
		for i := range prompts {
			alone, err := g.Logits(t.Context(), prompts[i:i+1], tokens[i:i+1])
			require.NoError(t, err)
			require.Len(t, alone[0], 5)
			require.Equal(t, all[i], alone[0], "%s, prompt %d", kind, i)
		}
	}
}

// Pieces have the texts of tokens, without what ends them.
//
//lazo:norace
func TestGenerate_texts(t *testing.T) {
	tokenizer, err := text.Open(filepath.Join("testdata", "tokenizer.json"))
	require.NoError(t, err)
	g := generatorOf(t, "llama3", 2, 20)
	prompts := [][]int32{{20, 30, 40}, {7}}
	plain := generated(t, g, prompts, pretrained.Generation{Tokenizer: tokenizer, Most: 8})
	for i, w := range plain {
		want, err := tokenizer.DecodeOrdinary(slices.Concat(prompts[i], w.ids))
		require.NoError(t, err)
		begin, err := tokenizer.DecodeOrdinary(prompts[i])
		require.NoError(t, err)
		require.Equal(t, want, begin+strings.Join(w.texts, ""))
		require.Equal(t, "length", w.end)
	}
	ids := plain[0].ids
	stop := plain[0].texts[4] + plain[0].texts[5][:2]
	of := pretrained.Generation{Tokenizer: tokenizer, Most: 8, StopTexts: []string{"never", stop}}
	got := generated(t, g, prompts[:1], of)[0]
	require.Equal(t, written{ids[:6], append(slices.Clone(plain[0].texts[:4]), "", ""), "stop"}, got)
	of.StopTexts, of.Stop = nil, []int32{ids[4]}
	got = generated(t, g, prompts[:1], of)[0]
	end := slices.Index(ids, ids[4])
	require.Equal(t, written{ids[:end+1], append(slices.Clone(plain[0].texts[:end]), ""), "stop"}, got)
	of.Stop, of.Beams = nil, pretrained.Beams{Count: 2}
	got = generated(t, g, prompts[:1], of)[0]
	want, err := tokenizer.DecodeOrdinary(got.ids)
	require.NoError(t, err)
	require.Equal(t, " "+want, strings.Join(got.texts, ""))
}

//lazo:norace
func TestGenerate_errors(t *testing.T) {
	g := generatorOf(t, "llama", 2, 20)
	one := [][]int32{{7}}
	for message, row := range map[string]struct {
		prompts [][]int32
		of      pretrained.Generation
	}{
		"prompt 0 has 0 tokens, expected 1 to 20":                               {[][]int32{nil}, pretrained.Generation{}},
		"prompt 1 has 21 tokens, expected 1 to 20":                              {[][]int32{{7}, make([]int32, 21)}, pretrained.Generation{}},
		"3 prompts with 1 beams, expected 1 prompt or more, and at most 2 rows": {[][]int32{{7}, {7}, {7}}, pretrained.Generation{}},
		"2 prompts with 2 beams":                                                {[][]int32{{7}, {7}}, pretrained.Generation{Beams: pretrained.Beams{Count: 2}}},
		"0 prompts":                                                             {nil, pretrained.Generation{}},
		"token 1 of prompt 0 is 60, expected 0 to 59":                           {[][]int32{{7, 60}}, pretrained.Generation{}},
		"token 0 of Stop is -1, expected 0 to 59":                               {one, pretrained.Generation{Stop: []int32{-1}}},
		"-1 tokens as Most":                                                     {one, pretrained.Generation{Most: -1}},
		"StopTexts without a Tokenizer":                                         {one, pretrained.Generation{StopTexts: []string{"x"}}},
		`StopTexts[0] is ""`:                                                    {one, pretrained.Generation{StopTexts: []string{""}, Tokenizer: &text.Tokenizer{}}},
		"a search with Beams has Sampling other than Repetition, or StopTexts":  {one, pretrained.Generation{Beams: pretrained.Beams{Count: 2}, Sampling: text.Sampling{TopK: 2}}},
		"prompt 0: text: Repetition is -2":                                      {one, pretrained.Generation{Beams: pretrained.Beams{Count: 2}, Sampling: text.Sampling{Repetition: -2}}},
		`Early:soon}, expected a Count from 0 to 4096, a finite LengthPenalty, and Early ""`: {one, pretrained.Generation{Beams: pretrained.Beams{Early: "soon"}}},
		"prompt 0: text: {Repetition:0 Temperature:-1":                                       {one, pretrained.Generation{Sampling: text.Sampling{Temperature: -1}}},
	} {
		count := 0
		for _, err := range g.Generate(t.Context(), row.prompts, row.of) {
			require.ErrorContains(t, err, message)
			require.ErrorContains(t, err, "pretrained: generate: ")
			count++
		}
		require.Equal(t, 1, count, message)
	}
	_, err := opened(t, "testdata/llama").Hidden().Generator(nil, 1, 3)
	require.ErrorContains(t, err, "expected one of CausalLM")
	_, err = opened(t, "testdata/llama").CausalLM().Generator(nil, 0, 3)
	require.ErrorContains(t, err, "0 rows of 3 places, expected 1 to 4096 rows of 1 to")
	_, err = opened(t, fixtureOf(t, "gpt2").folder(t, "ForCausalLM")).CausalLM().Generator(nil, 1, 29)
	require.ErrorContains(t, err, "a generator for 29 places, expected at most 28, for which the network has positions")
}
