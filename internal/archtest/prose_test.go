package archtest

import (
	"fmt"
	"go/ast"
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

// constructions are refused besides the words of testdata/words.tsv.
var constructions = []*regexp.Regexp{
	regexp.MustCompile(`(?:^|[.:;!?] |\n)What (?:is|are|was|has|have|had|stands|it|they|a|the|one) `),
	regexp.MustCompile(`(?:^|[.:;!?] |\n)Who [a-z]+s\b`),
}

// opening finds doc comments that do not say what the thing does. It looks at Go comments alone.
var opening = regexp.MustCompile(`^\w+ (?:gives|says|tells|is what|is how)\b`)

// clause finds a relative clause as the subject of a message, which begins in lower case.
var clause = regexp.MustCompile(`(?i)(?:^|[.:;!?]\s+|\n\s*)(?:what|who)\s+\w+`)

// isNo finds "x is no number", for "x is not a number". The names of its groups are those of the allowed words.
var isNo = regexp.MustCompile(`(?i)\b(?:(there)|\S+)\s+(?:is|are)\s+no\s+(?:(better|higher|longer|larger|less|likelier|lower|more|smaller)\b|\S)`)

// words are the phrases of testdata/words.tsv. The second one is for messages alone.
func words(t *testing.T) (all, ofMessages *regexp.Regexp) {
	text, err := os.ReadFile("testdata/words.tsv")
	require.NoError(t, err)
	phrases := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(strings.TrimSpace(line), "\t"); !strings.HasPrefix(line, "#") {
			require.Len(t, cells, 3, line)
			phrases[cells[0]] = append(phrases[cells[0]], strings.ReplaceAll(regexp.QuoteMeta(cells[1]), " ", `\s+`))
		}
	}
	require.Len(t, phrases, 2)
	either := func(list []string) *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:` + strings.Join(list, "|") + `)\b`)
	}
	return either(phrases["all"]), either(phrases["message"])
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

// messages are the string literals of a file that have a space: error and log texts, usage texts, and the names and
// constants in them. Literals that are added are one text, with … in place of other operands. Tags are no messages.
func messages(file *ast.File) (texts []*message) {
	var visit func(n ast.Node, in *message) bool
	visit = func(n ast.Node, in *message) bool {
		own := func(e ast.Expr) {
			ast.Inspect(e, func(n ast.Node) bool { return visit(n, in) })
		}
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			own(n.Type)
			return false
		case *ast.BinaryExpr:
			if n.Op != token.ADD {
				return true
			}
			if in == nil {
				in = &message{at: n.Pos()}
				texts = append(texts, in)
			}
			own(n.X)
			own(n.Y)
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				if in == nil {
					in = &message{at: n.Pos()}
					texts = append(texts, in)
				}
				in.text += text
			}
		case ast.Expr:
			_, inner := n.(*ast.ParenExpr)
			if in != nil && !inner {
				in.text += "…"
				in = nil
				ast.Inspect(n, func(inside ast.Node) bool { return inside == n || visit(inside, nil) })
				return false
			}
		}
		return true
	}
	ast.Inspect(file, func(n ast.Node) bool { return visit(n, nil) })
	return slices.DeleteFunc(texts, func(m *message) bool { return !strings.ContainsAny(m.text, " \n") })
}

type message struct {
	at   token.Pos
	text string
}

// inMessage are the passages of a message that docs/style.md refuses.
func inMessage(text string, words, more *regexp.Regexp) []string {
	found := append(findings(text, words, false), more.FindAllString(text, -1)...)
	found = append(found, clause.FindAllString(text, -1)...)
	for _, m := range isNo.FindAllStringSubmatch(text, -1) {
		if m[1] == "" && m[2] == "" {
			found = append(found, m[0])
		}
	}
	return found
}

func TestProse(t *testing.T) {
	words, ofMessages := words(t)
	found, names := map[string][]string{}, map[string]string{}
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
		case ".md", ".tsv":
			text, err := os.ReadFile(path)
			if err != nil || relative == filepath.Join("docs", "style.md") {
				return err
			}
			found[relative] = findings(string(text), words, false)
		case ".go":
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, group := range file.Comments {
				for _, f := range findings(group.Text(), words, true) {
					found[filepath.Dir(relative)] = append(found[filepath.Dir(relative)], f)
					names[filepath.Dir(relative)] += fmt.Sprintf("\n\t%s: %q", relative, f)
				}
			}
			if strings.HasSuffix(path, "_test.go") {
				return nil
			}
			for _, m := range messages(file) {
				if f := inMessage(m.text, words, ofMessages); len(f) > 0 {
					t.Errorf("%s:%d: docs/style.md refuses %q in the text %q: rewrite it", relative, files.Position(m.at).Line, f, m.text)
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
	words, _ := words(t)
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

// The control of the part that reads messages: it finds each literal, joined where literals are added, and each rule
// finds its passage in one.
func TestProse_findsInMessages(t *testing.T) {
	words, ofMessages := words(t)
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n\nimport \"a b\"\n\nconst why = \"it goes \" + (\"on here\")\n\n"+
		"type t struct {\n\tF int `json:\"it stands here\"`\n\tG func(x [len(\"a type's\")]int)\n}\n\n"+
		"func f() {\n\tg(\"one\", 1+2, \"the first \"+h(\"an inner text\")+\" and last\", `raw\ntext`)\n}\n", 0)
	require.NoError(t, err)
	var texts []string
	for _, m := range messages(file) {
		texts = append(texts, m.text)
	}
	require.ElementsMatch(t, []string{"it goes on here", "a type's", "the first … and last", "an inner text", "raw\ntext"}, texts)
	for _, text := range []string{
		"it goes on here", "x: what rank 0 says: %w", "%w\n  what fits is taken", "%q is no number", "the files are no texts", "the name is there twice", "who waits is asked",
	} {
		require.NotEmpty(t, inMessage(text, words, ofMessages), text)
	}
	for _, text := range []string{"there is no number", "it is no longer than 3, and no more", "it reports what changed", "the flag `behind`"} {
		require.Empty(t, inMessage(text, words, ofMessages), text)
	}
}
