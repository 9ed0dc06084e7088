package chat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
