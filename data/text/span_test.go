package text

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// origins returns for each character the part of the original from which it comes.
func origins(p *span, original string) (all []string) {
	for i := range p.s {
		at := p.original(i, i+1)
		all = append(all, original[at[0]:at[1]])
	}
	return all
}

// Each change keeps the places in the original, and makes the same text without places.
func TestSpan_places(t *testing.T) {
	const text = "aé bc"
	noSpace := func(r rune) bool { return !unicode.IsSpace(r) }
	for _, row := range []struct {
		name   string
		change func(p *span, places bool)
		want   string
		of     []string
	}{
		{"a character taken out", func(p *span, places bool) { p.filter(noSpace, places) }, "aébc", []string{"a", "é", "b", "c"}},
		{"the first ones taken out", func(p *span, places bool) { p.filter(func(r rune) bool { return r == 'c' }, places) }, "c", []string{"c"}},
		{"all taken out", func(p *span, places bool) { p.filter(func(rune) bool { return false }, places) }, "", nil},
		{"none taken out", func(p *span, places bool) { p.filter(func(rune) bool { return true }, places) }, text, []string{"a", "é", " ", "b", "c"}},
		{"a text before", func(p *span, places bool) { p.prepend("__", places) }, "__" + text, []string{"a", "a", "a", "é", " ", "b", "c"}},
		{"two made of one", func(p *span, places bool) { p.change(1, 3, []edit{{'e', 0}, {'x', 1}}, 0, places) }, "aex bc", []string{"a", "é", "é", " ", "b", "c"}},
		{"one made of two", func(p *span, places bool) { p.change(4, 6, []edit{{'B', -1}}, 0, places) }, "aé B", []string{"a", "é", " ", "b"}},
		{"replaced", func(p *span, places bool) { p.replace([][2]int{{0, 1}, {3, 5}}, "..", places) }, "..é..c", []string{"a", "a", "é", "b", "b", "c"}},
	} {
		p, bare := &span{s: text}, &span{s: text}
		row.change(p, true)
		row.change(bare, false)
		require.Equal(t, row.want, p.s, row.name)
		require.Equal(t, row.want, bare.s, row.name)
		require.Equal(t, row.of, origins(p, text), row.name)
	}
}

// A part of a text knows its own place, by whole characters; an empty part has one, too.
func TestSpan_slice(t *testing.T) {
	const text = "xxaé bc"
	p := span{s: text[2:], begin: 2}
	require.Equal(t, [2]int{3, 5}, p.original(1, 2), "half of é")
	require.Equal(t, [2]int{3, 5}, p.original(2, 3), "the other half")
	part := p.slice(3, 6)
	require.Equal(t, " bc", part.s)
	require.EqualValues(t, -1, part.id)
	require.Equal(t, [2]int{6, 8}, part.original(1, 3))
	require.Equal(t, [2]int{6, 6}, part.original(1, 1))
	p.filter(func(r rune) bool { return r != ' ' }, true)
	part = p.slice(3, 5)
	require.Equal(t, "bc", part.s)
	require.Equal(t, [2]int{6, 8}, part.original(0, 2))
	require.Equal(t, strings.Index(text, "b"), part.begin)
}
