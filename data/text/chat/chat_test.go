package chat

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

type peerCases struct {
	Templates     map[string]string
	Conversations [][]Message
	Cases         []struct {
		Template     string
		Conversation int
		Generate     bool
		Text         *string
	}
}

var special = map[string]string{"bos_token": "<s>", "eos_token": "</s>"}

// Conversations are written as transformers writes them, and refused where it raises an error.
func TestApply_asThePeer(t *testing.T) {
	content, err := os.ReadFile("testdata/chat.json")
	require.NoError(t, err)
	var all peerCases
	require.NoError(t, json.Unmarshal(content, &all))
	require.Greater(t, len(all.Cases), 80)
	refused := 0
	for _, c := range all.Cases {
		template, err := parse(all.Templates[c.Template], special)
		require.NoError(t, err, c.Template)
		got, err := template.Apply(all.Conversations[c.Conversation], c.Generate)
		if c.Text == nil {
			refused++
			require.ErrorContains(t, err, "the template refuses the conversation", c.Template)
			continue
		}
		require.NoError(t, err, c.Template)
		require.Equal(t, *c.Text, got, "%s, conversation %d", c.Template, c.Conversation)
	}
	require.Greater(t, refused, 3)
}

// Sequences are as Jinja2 3.1.6 writes them.
func TestApply_sequences(t *testing.T) {
	for source, want := range sequences {
		template, err := parse(source, nil)
		require.NoError(t, err, source)
		got, err := template.Apply(nil, false)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
}

var sequences = map[string]string{
	"{{ (1,2) }} {{ (1,) }} {{ () }} {{ [(1, 'a')] }}":                                                                                                "(1, 2) (1,) () [(1, 'a')]",
	"{{ (1,) == [1] }} {{ (1,) == (1,) }} {{ [1] != (1,) }} {{ (1,) in [[1], (2,)] }}":                                                                "False True True False",
	"{{ (1,) + (2,) }} {{ [1] + [2] }}":                                                                                                               "(1, 2) [1, 2]",
	"{{ {'a': 1}.items()|list }} {{ {'a': 1}.keys()|list }} {{ {'a': 1}.values()|list }} {{ {'a': 1}|items|list }}":                                   "[('a', 1)] ['a'] [1] [('a', 1)]",
	"{{ (1,2,3)[::-1] }} {{ (1,2,3)[1] }} {{ (1, 2)|tojson }} {{ (1, 2)|length }}":                                                                    "(3, 2, 1) 2 [1, 2] 2",
	"{% set x = 1, 2 %}{{ x }}{% set a, b = x %}{{ a }}{% set c, d = [3, 4]|map('string') %}{{ d }}":                                                  "(1, 2)14",
	"{{ range(3)|list }} {{ range(3)[1] }} {{ range(5)[::2]|list }} {{ range(3)|length }} {{ 2 in range(3) }}":                                        "[0, 1, 2] 1 [0, 2, 4] 3 True",
	"{% set g = ['a','b']|map('upper') %}{{ g|list }}{{ g|list }}":                                                                                    "['A', 'B'][]",
	"{{ 'yes' if [{'x': 0}]|selectattr('x') else 'no' }} {{ 'yes' if {}.items() else 'no' }}":                                                         "yes no",
	"{% set g = [1,2,3]|map('string') %}{{ '2' in g }}{{ g|list }}{{ '2' in g }}":                                                                     "True['3']False",
	"{{ [1,2]|reverse|list }} {{ [1,2]|reverse|first }} {{ (1, 2)|reverse|list }} {{ 'ab'|reverse }} {{ [1, 2]|reverse|reverse }}":                    "[2, 1] 2 [2, 1] ba [1, 2]",
	"{% set g = [1,2]|map('string') %}{{ g|first }}{{ g|list }}":                                                                                      "1['2']",
	"{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{{ loop.last }}{% endfor %}":                                                                     "a1True",
	"{{ {}.items() is sequence }} {{ {}.items() is iterable }} {{ (1,) is sequence }} {{ [1]|map('string') is sequence }} {{ range(3) is sequence }}": "False True True False True",
	"{% for x in [1, 2]|map('string') %}{{ loop.length }}{{ loop.last }}{% endfor %}":                                                                 "2False2True",
	"{{ {'a': 1}.items()|length }} {{ ('a', 1) in {'a': 1}.items() }} {{ ['a', 1] in {'a': 1}.items() }}":                                             "1 True False",
	"{{ 'a' 'b' }}{{ (1, 2) ~ 'x' }} {{ (1, 2)|join('-') }}":                                                                                          "ab(1, 2)x 1-2",
	"{{ {'a': 1}.items()|first }} {{ {'a': 1}.items()|last }} {{ {'a': 1}.items()|list == [('a', 1)] }}":                                              "('a', 1) ('a', 1) True",
}
