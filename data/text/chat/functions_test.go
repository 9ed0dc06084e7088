package chat

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestApply_time(t *testing.T) {
	template, err := parse("{{ strftime_now('%d %b %Y') }}", nil)
	require.NoError(t, err)
	template.now = func() time.Time { return time.Date(2024, 7, 6, 0, 0, 0, 0, time.UTC) }
	got, err := template.Apply(nil, false)
	require.NoError(t, err)
	require.Equal(t, "06 Jul 2024", got)
}

// Formats that no Go layout has are an error, never another text.
func TestStrftime(t *testing.T) {
	at := time.Date(2024, 7, 6, 15, 4, 9, 0, time.UTC)
	for format, want := range map[string]string{"%A %a %B %b": "Saturday Sat July Jul", "%Y-%m-%d %y": "2024-07-06 24", "%H:%M:%S %I %p": "15:04:09 03 PM", "100%% Jan 2": "100% Jan 2", "": ""} {
		got, err := strftime(at, format)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, format := range []string{"%j", "%", "%-d", "%Y %Q"} {
		_, err := strftime(at, format)
		require.EqualError(t, err, fmt.Sprintf("the format %q of a time is not supported", format))
	}
}

// The methods and filters are Python's and Jinja2's.
func TestApply_functions(t *testing.T) {
	for source, want := range map[string]string{
		"{{ ' a '.strip() }}|{{ 'xxaxy'.strip('yx') }}|{{ 'xax'.lstrip('x') }}|{{ 'xax'.rstrip('x') }}":            "a|a|ax|xa",
		"{{ 'it\\'s a bIG day'.title() }}|{{ 'aBC d'.capitalize() }}|{{ 'aB'.upper() }}|{{ 'aB'|lower }}":          "It'S A Big Day|Abc d|AB|ab",
		"{{ 'äbc'.find('b') }} {{ 'abc'.find('x') }} {{ 'aaaa'.count('aa') }} {{ 'aaa'.replace('a', 'b') }}":       "1 -1 2 bbb",
		"{{ ' a  b '.split() }} {{ 'a,,b'.split(',') }} {{ 'a,b,c'.split(',', 1) }}":                               "['a', 'b'] ['a', '', 'b'] ['a', 'b,c']",
		"{{ 'abc'.removeprefix('ab') }} {{ 'abc'.removesuffix('b') }} {{ 'abc'.startswith('ab') }}":                "c abc True",
		"{{ range(2, 8, 3)|list }} {{ range(3, 0, -1)|list }} {{ range(0)|list }}":                                 "[2, 5] [3, 2, 1] []",
		"{{ {'a': 1}.get('a') }} {{ {'a': 1}.get('b', 7) }} {{ {'a': 1}.get('b') }}":                               "1 7 None",
		"{{ none|default('x') }} {{ none|default('x', true) }} {{ missing|default('x') }}":                         "None x x",
		"{{ [{'n': 1}, {'n': 3}]|selectattr('n', 'gt', 2)|list }} {{ [{'n': 1}, {'n': 0}]|rejectattr('n')|list }}": "[{'n': 3}] [{'n': 0}]",
		"{{ -3 is odd }} {{ 4 is even }} {{ 1.5 is number }} {{ true is integer }} {{ 'é'|length }}":               "True True True False 1",
	} {
		template, err := parse(source, nil)
		require.NoError(t, err, source)
		got, err := template.Apply(nil, false)
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
	for source, want := range map[string]string{
		"{{ range(1, 2, 0) }}":        "range with the step 0",
		"{{ range() }}":               "range takes 1 to 3 arguments, not 0",
		"{{ range('a') }}":            "range of a text",
		"{{ 'a'.split('') }}":         "split by nothing",
		"{{ 'a'.startswith(1) }}":     "an argument of startswith is a number, expected a text",
		"{{ 'a'.find() }}":            "find takes 1 to 1 arguments without names, not 0",
		"{{ dict(a=1, b=2) }}":        "dict of more than one value is not supported",
		"{{ {'a': 1}.get() }}":        "get takes 1 or 2 arguments",
		"{{ 'a'|tojson(indent=17) }}": "tojson with these arguments is not supported",
		"{{ raise_exception('no') }}": `the template refuses the conversation: "no"`,
		"{{ 1|length }}":              "the length of a number",
	} {
		template, err := parse(source, nil)
		require.NoError(t, err, source)
		_, err = template.Apply(nil, false)
		require.ErrorContains(t, err, want, source)
	}
}
