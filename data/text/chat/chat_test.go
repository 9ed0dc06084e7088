package chat

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

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

// A hostile template is an error, soon.
func TestApply_bounds(t *testing.T) {
	messages := []Message{{"user", "hello"}}
	var keys []string
	for i := range 1000 {
		keys = append(keys, fmt.Sprintf("'%d': 1", i))
	}
	for source, message := range map[string]string{
		"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}": "more than 1000000 steps",
		"{{ range(1000000000)|list }}": "range of more than 100000 numbers",
		"{{ 'x' * 1000000000 }}":       "a text of more than 16777216 bytes",
		"{% set ns = namespace(x='x') %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}":                                                          "more than",
		"{% set ns = namespace(x='ab') %}{% for i in range(99999) %}{{ 'x' * 100000 }}{% endfor %}":                                                                           "it makes more than 16777216 bytes",
		"{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}":                                                                                                                  "in each other",
		"{% set ns = namespace() %}{% set ns.x = [ns] %}{% for i in range(9) %}{{ ns.x }}{% endfor %}":                                                                        "cannot be printed",
		"{% set ns = namespace(x=[]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == ns.x }}":                                                   "more than 1000000 steps",
		"{% set ns = namespace(x=[]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ 1 in [ns.x == ns.x] }}":                                            "more than 1000000 steps",
		"{{ ('x'*1000000).strip('é'*1000000 ~ 'x') }}":                                                                                                                        "more than 1000000 steps",
		"{% set x = range(99999) %}{% set y = [" + strings.Repeat("x|map('safe'), ", 30) + "] %}":                                                                             "more than 1000000 steps",
		"{% set d = {" + strings.Join(keys, ", ") + "} %}{% for i in range(5000) %}{% set y = d.values() %}{% endfor %}":                                                      "more than 1000000 steps",
		"{% set ns = namespace(x=[]) %}{% for i in range(90) %}{% set ns.x = [ns.x] %}{% endfor %}{% for i in range(3000) %}{% set y = ns.x|tojson(indent=16) %}{% endfor %}": "more than 1000000 steps",
		"{% set s = 'a ' * 500000 %}{% for i in range(3) %}{% set y = s.split(' ') %}{% endfor %}":                                                                            "more than 1000000 steps",
		"{% macro m(a=m()) %}{% endmacro %}{{ m() }}":                                                                                                                         "expressions in each other",
		"{{ 1" + strings.Repeat("+1", 50_000) + " }}":                                                                                                                         "expressions in each other",
		"{{ {'a': 1}.items() }}":                    "a view of a mapping cannot be printed",
		"{{ {'a': 1}.items()[0] }}":                 "a view of a mapping has no items by number",
		"{{ {'a': 1}.keys() == ['a'] }}":            "a view of a mapping == a list is not supported",
		"{{ range(3) }}":                            "a range cannot be printed",
		"{{ range(3)|tojson }}":                     "tojson of a range",
		"{{ [range(3)] == [[0, 1, 2]] }}":           "a range == a list is not supported",
		"{{ [1] + (2,) }}":                          "a list + a tuple",
		"{{ messages|map(attribute='role') }}":      "an iterator cannot be printed",
		"{{ messages|selectattr('role')|length }}":  "the length of an iterator",
		"{{ (messages|reverse)[0] }}":               "an iterator has no items by number",
		"{{ messages|map(attribute='role')|last }}": "the last of an iterator",
		"{{ missing.content }}":                     `"missing", which is undefined`,
		"{{ messages.append(1) }}":                  "the method append of a list is not supported",
		"{{ messages[0].content.zfill(3) }}":        "the method zfill of a text is not supported",
		"{{ 'ä'.upper() }}":                         "another case",
		"{{ 1 + 'x' }}":                             "a number + a text",
		"{{ 1 // 0 }}":                              "division by zero",
	} {
		template, err := parse(source, special)
		require.NoError(t, err, source)
		_, err = template.Apply(messages, true)
		require.ErrorContains(t, err, message, source)
		require.ErrorContains(t, err, "chat: the template: line 1: ")
	}
	for source, message := range map[string]string{
		"{{ x | nope }}": `the filter "nope" is not supported`, "{% include 'x' %}": `the tag "include" is not supported`, "{{ x is nope }}": `the test "nope"`,
		"{% for x in y %}": "the template ends", "{% endfor %}": `the tag "endfor"`, "{{ 'x }}": "without its end", "{{ 2 ** 9 }}": "the operator **", "{{ $ }}": "the character",
		"{{ " + strings.Repeat("(", 500) + strings.Repeat(")", 500) + " }}": "in each other", strings.Repeat("{% if x %}", 500): "in each other", "{% break %}": "outside of a loop", "{# x": "a comment",
		"{{ '\\d' }}": "the escape", "\xff": "UTF-8",
	} {
		_, err := parse(source, special)
		require.ErrorContains(t, err, message, source)
	}
}

// A cut template is an error, or a shorter one, and never a panic.
func TestParse_cut(t *testing.T) {
	content, err := os.ReadFile("testdata/chat.json")
	require.NoError(t, err)
	var all peerCases
	require.NoError(t, json.Unmarshal(content, &all))
	all.Templates["macro"] = "{% macro m(a, b=1) %}{% generation %}{{ a[1:2] is not none }}{% endgeneration %}{% endmacro m %}{% set x %}{% endset %}"
	cuts := 0
	for _, source := range all.Templates {
		for n := 0; n < len(source); n += 5 {
			for _, end := range []string{"", "{{", "{% $"} {
				_, _ = parse(source[:n]+end, special)
				cuts++
			}
		}
	}
	require.Greater(t, cuts, 1000)
	_, err = parse("{% macro m() %}{{", special)
	require.ErrorContains(t, err, "without its end")
}

// A comparison ends with the steps.
func TestEqual_steps(t *testing.T) {
	nested := &array{as: list}
	for range 24 {
		nested = &array{[]any{nested, nested}, list}
	}
	r := &renderer{}
	require.False(t, r.equal(nested, nested))
	require.ErrorContains(t, r.fault, "steps")
	require.Less(t, r.steps, mostSteps+10)
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

func TestApply_time(t *testing.T) {
	template, err := parse("{{ strftime_now('%d %b %Y') }}", nil)
	require.NoError(t, err)
	template.now = func() time.Time { return time.Date(2024, 7, 6, 0, 0, 0, 0, time.UTC) }
	got, err := template.Apply(nil, false)
	require.NoError(t, err)
	require.Equal(t, "06 Jul 2024", got)
}
