package notebook

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"image/png"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	// what the notebook imports, for go.mod
	_ "github.com/janpfeifer/gonb/gonbui"
	_ "github.com/janpfeifer/must"

	_ "github.com/lazo-ml/lazo/flaxlike/report"
)

var executed = flag.String("executed", "", "digits.ipynb with outputs")

type cell struct {
	Source  []string `json:"source"`
	Outputs []struct {
		Type string                     `json:"output_type"`
		Name string                     `json:"name"`
		Text []string                   `json:"text"`
		Data map[string]json.RawMessage `json:"data"`
	} `json:"outputs"`
}

func read(t *testing.T, path string) []cell {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var notebook struct {
		Cells []cell `json:"cells"`
	}
	require.NoError(t, json.Unmarshal(text, &notebook))
	return notebook.Cells
}

func TestNotebook_hasNoOutputs(t *testing.T) {
	for _, c := range read(t, "digits.ipynb") {
		assert.Empty(t, c.Outputs, "%q", c.Source)
	}
}

func TestNotebook_showsProgressFiguresAndPage(t *testing.T) {
	if *executed == "" {
		t.Fatal("-executed is missing: run make notebook")
	}
	var printed strings.Builder
	var kinds []string
	for _, c := range read(t, *executed) {
		for _, o := range c.Outputs {
			switch o.Type {
			case "stream":
				assert.Equal(t, "stdout", o.Name, "%q", o.Text)
				printed.WriteString(strings.Join(o.Text, ""))
			case "display_data":
				for kind, value := range o.Data {
					kinds = append(kinds, kind)
					check(t, kind, value)
				}
			default:
				t.Errorf("%s of %q", o.Type, c.Source)
			}
		}
	}
	slices.Sort(kinds)
	assert.Equal(t, []string{"image/png", "image/png", "text/html", "text/markdown"}, kinds)
	assert.NotRegexp(t, "[\x00-\x09\x0b-\x1f]", printed.String(), "escape codes or a row that is written over")
	lines := strings.Split(strings.TrimSpace(printed.String()), "\n")
	require.Len(t, lines, 16, "15 epochs, and the accuracy:\n%s", printed.String())
	for i, line := range lines[:15] {
		assert.Regexp(t, `^epoch +`+strconv.Itoa(i+1)+`/15 - .*val_accuracy: `, line)
	}
	accuracy := regexp.MustCompile(`^test accuracy: (0\.\d{3}|1\.000)$`).FindStringSubmatch(lines[15])
	require.NotNil(t, accuracy, lines[15])
	value, err := strconv.ParseFloat(accuracy[1], 64)
	require.NoError(t, err)
	assert.Greater(t, value, 0.93)
}

func check(t *testing.T, kind string, value json.RawMessage) {
	switch kind {
	case "image/png":
		var text string
		require.NoError(t, json.Unmarshal(value, &text))
		image, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(strings.TrimSpace(text))))
		require.NoError(t, err)
		assert.Greater(t, image.Bounds().Dx(), 500)
	case "text/html":
		var lines []string
		require.NoError(t, json.Unmarshal(value, &lines))
		page := strings.Join(lines, "")
		assert.Contains(t, page, "Confusion")
		assert.Contains(t, page, "&lt;svg")
	}
}
