package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// constructions are refused besides the words of docs/style.md.
var constructions = []*regexp.Regexp{
	regexp.MustCompile(`(?:^|[.:;!?] |\n)What (?:is|are|was|has|have|had|stands|it|they|a|the|one) `),
	regexp.MustCompile(`(?:^|[.:;!?] |\n)Who [a-z]+s\b`),
}

// opening finds doc comments that do not say what the thing does. It looks at Go comments alone.
var opening = regexp.MustCompile(`^\w+ (?:gives|says|tells|is what|is how)\b`)

// words are the left column of the table in docs/style.md.
func words(t *testing.T) *regexp.Regexp {
	text, err := os.ReadFile("../../docs/style.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| instead of | write |\n|---|---|\n")
	require.True(t, found, "docs/style.md has no table of words")
	var phrases []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			break
		}
		phrases = append(phrases, strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(cells[1])), " ", `\s+`))
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(phrases, "|") + `)\b`)
}

var code = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")

// findings are the passages of a text that docs/style.md refuses.
func findings(text string, words *regexp.Regexp, comment bool) []string {
	text = code.ReplaceAllString(text, "")
	found := words.FindAllString(text, -1)
	for _, c := range constructions {
		found = append(found, c.FindAllString(text, -1)...)
	}
	if comment {
		found = append(found, opening.FindAllString(text, -1)...)
	}
	return found
}

func TestProse(t *testing.T) {
	words, found, names := words(t), map[string][]string{}, map[string]string{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel("../..", path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); relative != "." && (strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".md":
			text, err := os.ReadFile(path)
			if err != nil || relative == filepath.Join("docs", "style.md") {
				return err
			}
			found[relative] = findings(string(text), words, false)
		case ".go":
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, group := range file.Comments {
				for _, f := range findings(group.Text(), words, true) {
					found[filepath.Dir(relative)] = append(found[filepath.Dir(relative)], f)
					names[filepath.Dir(relative)] += fmt.Sprintf("\n\t%s: %q", relative, f)
				}
			}
		}
		return nil
	}))
	budget, err := os.ReadFile("testdata/prose.txt")
	require.NoError(t, err)
	allowed := map[string]int{}
	for line := range strings.Lines(string(budget)) {
		name, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		if allowed[name], err = strconv.Atoi(count); err != nil {
			t.Errorf("testdata/prose.txt: %q: expected a path and a count", line)
		}
	}
	var left strings.Builder
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if n := len(found[name]); n > allowed[name] {
			t.Errorf("%s has %d passages that docs/style.md refuses, expected at most %d: rewrite some of %q%s", name, n, allowed[name], found[name], names[name])
		} else if n > 0 {
			fmt.Fprintf(&left, "%s %d\n", name, n)
		}
	}
	for name := range allowed {
		if _, ok := found[name]; !ok {
			t.Errorf("testdata/prose.txt names %s, which is not there", name)
		}
	}
	if file := os.Getenv("LAZO_PROSE"); file != "" && !t.Failed() {
		require.NoError(t, os.WriteFile(file, []byte(left.String()), 0o644)) // the budget as it could be
	}
}

// The control of TestProse: each rule finds its passage, and plain English has none.
func TestProse_finds(t *testing.T) {
	words := words(t)
	for _, text := range []string{
		"A reader is told of it.", "Nobody reads it.", "It stands\nhere.", "What is cut is saved.", "It ends. Who reads it waits.",
	} {
		require.NotEmpty(t, findings(text, words, false), text)
	}
	require.NotEmpty(t, findings("Scan gives the outputs.", words, true))
	require.NotEmpty(t, findings("Rate is how fast it goes.", words, true))
	for _, text := range []string{"Scan returns the outputs.", "`behind` and\n```\nnobody\n```\nare code.", "It reports what changed."} {
		require.Empty(t, findings(text, words, true), text)
	}
}
