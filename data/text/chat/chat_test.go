package chat

import (
	"encoding/json"
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
	for source, message := range map[string]string{
		"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}": "more than 1000000 steps",
		"{{ range(1000000000) }}": "range of more than 100000 numbers",
		"{{ 'x' * 1000000000 }}":  "a text of more than 16777216 bytes",
		"{% set ns = namespace(x='x') %}{% for i in range(100) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}": "more than",
		"{% set ns = namespace(x='ab') %}{% for i in range(99999) %}{{ 'x' * 100000 }}{% endfor %}":                  "it makes more than 16777216 bytes",
		"{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}":                                                         "in each other",
		"{% set ns = namespace() %}{% set ns.x = [ns] %}{% for i in range(9) %}{{ ns.x }}{% endfor %}":               "cannot be printed",
		"{{ missing.content }}":              `"missing", which is undefined`,
		"{{ messages.append(1) }}":           "the method append of a list is not supported",
		"{{ messages[0].content.zfill(3) }}": "the method zfill of a text is not supported",
		"{{ 'ä'.upper() }}":                  "another case",
		"{{ 1 + 'x' }}":                      "a number + a text",
		"{{ 1 // 0 }}":                       "division by zero",
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

func TestApply_time(t *testing.T) {
	template, err := parse("{{ strftime_now('%d %b %Y') }}", nil)
	require.NoError(t, err)
	template.now = func() time.Time { return time.Date(2024, 7, 6, 0, 0, 0, 0, time.UTC) }
	got, err := template.Apply(nil, false)
	require.NoError(t, err)
	require.Equal(t, "06 Jul 2024", got)
}
