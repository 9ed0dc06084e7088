package main_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/pretrained"
	"github.com/lazo-ml/lazo/strategies"
)

// alone computes an output of a folder's network for each text by itself.
func alone(t *testing.T, dir string, network func(*pretrained.Base) *pretrained.Network, output string, texts ...text.Input) (all [][]float32) {
	t.Helper()
	base := must.M1(pretrained.Open(t.Context(), dir))
	m := must.M1(flaxlike.New(t.Context(), network(base), flaxlike.WithStrategy(strategies.Jit(plugintest.CPU(t)))))
	defer m.Close()
	for _, in := range texts {
		p := must.M1(m.Predict(t.Context(), must.M1(base.Set([]text.Input{in}))))
		all = append(all, must.M1(p.Output(output)).Flat.([]float32))
	}
	return all
}

// A classifier of the hub answers texts of lines, CSV and JSON in the file's order, whatever their lengths.
func TestModelPredict_texts(t *testing.T) {
	dir := folderOf(t, "bert")
	files := t.TempDir()
	long := strings.Repeat("w5 ", 17) + "w6"
	want := alone(t, dir, func(b *pretrained.Base) *pretrained.Network { return b.Classifier(0) }, "logits",
		text.Input{Text: long}, text.Input{Text: "w1 w2"}, text.Input{Text: "w3", Pair: new("w9")})
	names := []string{"red", "green", "blue"}
	label := func(logits []float32) string {
		best := 0
		for i, x := range logits {
			if x > logits[best] {
				best = i
			}
		}
		return names[best]
	}
	r := run(t, "model", "predict", dir, inFolder(t, files, "rows.txt", long+"\nw1 w2\n"))
	require.Zero(t, r.code, r.stderr)
	require.Regexp(t, fmt.Sprintf(`^logits_probability_red,logits_probability_green,logits_probability_blue,logits_class\n\S+,%s\n\S+,%s\n$`, label(want[0]), label(want[1])), r.stdout)
	given := strings.Split(r.stdout, "\n")
	r = run(t, "model", "predict", dir, inFolder(t, files, "rows.csv", "pair,text\nw9,w3\n"))
	require.Zero(t, r.code, r.stderr)
	require.Regexp(t, fmt.Sprintf(`\n\S+,%s\n$`, label(want[2])), r.stdout)
	r = run(t, "model", "predict", dir, inFolder(t, files, "rows.csv", "pair,text\n,w1 w2\n"))
	require.Zero(t, r.code, r.stderr)
	without := run(t, "model", "predict", dir, inFolder(t, files, "rows.csv", "text\nw1 w2\n"))
	require.Equal(t, without.stdout, r.stdout, "an empty pair is none")
	r = asked(t, `{"text": "w1 w2"}`, "model", "predict", dir, "-", "--output", "csv")
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, strings.SplitAfter(given[2], ",")[3], strings.TrimSpace(strings.SplitAfter(strings.Split(r.stdout, "\n")[1], ",")[3]))

	for content, of := range map[string]string{
		"rows.csv|a,b\nw1,w2\n":            `it has the columns ["a" "b"], expected text, and maybe pair`,
		"rows.jsonl|{\"texts\":\"w1\"}":    `line 1: it has the fields ["texts"], expected "text", and maybe "pair"`,
		"rows.jsonl|{\"text\":1}":          `line 1: it has a JSON number, expected an object of texts, as {"text": "…"}`,
		"rows.txt|":                        "there are no texts",
		"rows.txt|" + long + " w1 w2 w3\n": "text 1 has 21 tokens, expected at most 20, as the model's files say: give --most 20 to cut longer texts",
	} {
		name, content, _ := strings.Cut(content, "|")
		r = run(t, "model", "predict", dir, inFolder(t, files, name, content))
		require.Equal(t, 1, r.code)
		require.Contains(t, r.stderr, of)
	}
	r = run(t, "model", "predict", "--missing", "NA", dir, filepath.Join(files, "rows.txt"))
	require.Contains(t, r.stderr, "--missing is for a saved model with a preparation")
	r = run(t, "model", "predict", folders+"bert", filepath.Join(files, "rows.txt"))
	require.Contains(t, r.stderr, "has no tokenizer.json")
	r = run(t, "model", "predict", folderOf(t, "bert", `"model_type"`, `"problem_type": "other", "model_type"`), filepath.Join(files, "rows.txt"))
	require.Contains(t, r.stderr, `problem_type in config.json is "other", expected single_label_classification`)
}

// Several classes of a text are independent, and a regression has numbers.
func TestModelPredict_problems(t *testing.T) {
	rows := inFolder(t, t.TempDir(), "rows.txt", "w1 w2\n")
	of := func(kind string) string {
		r := run(t, "model", "predict", folderOf(t, "bert", `"model_type"`, `"problem_type": "`+kind+`", "model_type"`), rows)
		require.Zero(t, r.code, r.stderr)
		return r.stdout
	}
	require.Regexp(t, `^logits_probability_red,logits_probability_green,logits_probability_blue,logits_class_red,logits_class_green,logits_class_blue\n.*,[01],[01],[01]\n$`, of("multi_label_classification"))
	require.Regexp(t, `^logits_0,logits_1,logits_2\n`, of("regression"))
}

// Vectors are those of each text alone, as lines of JSON, and longer texts are cut only by a flag.
func TestModelEmbed(t *testing.T) {
	dir := folderOf(t, "bert", "BertForSequenceClassification", "BertModel")
	inFolder(t, dir, "sentence_bert_config.json", `{"max_seq_length": 4}`)
	want := alone(t, dir, (*pretrained.Base).Embedder, "sentence_embedding", text.Input{Text: "w1 w2 w3 w4"}, text.Input{Text: "w5"})
	stdin := "w1 w2 w3 w4\nw5\n"
	r := asked(t, stdin, "model", "embed", dir, "-")
	require.Zero(t, r.code, r.stderr)
	check := func(stdout string) {
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		require.Len(t, lines, len(want))
		for i, line := range lines {
			var got []float32
			require.NoError(t, json.Unmarshal([]byte(line), &got))
			require.InDeltaSlice(t, want[i], got, 1e-5)
		}
	}
	check(r.stdout)
	stdin = "w1 w2 w3 w4 w5\nw5\n"
	r = asked(t, stdin, "model", "embed", dir, "-")
	require.Equal(t, 1, r.code)
	require.Contains(t, r.stderr, "text 1 has 5 tokens, expected at most 4")
	r = asked(t, stdin, "model", "embed", dir, "-", "--most", "4")
	require.Zero(t, r.code, r.stderr)
	check(r.stdout)
}
