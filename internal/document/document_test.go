package document_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/document"
)

// An object's members are read one after another. Long lists of numbers come as their JSON.
func TestDocument(t *testing.T) {
	long := "[" + strings.Repeat("1.5, ", 30) + "2]"
	d, err := document.New(`{"name": "é", "rate": 1e-3, "list": [{"a": 1}], "numbers": ` + long + `, "other": {"x": null}}`)
	require.NoError(t, err)
	var seen []string
	require.NoError(t, d.Object("it", func(name string) error {
		seen = append(seen, name)
		switch name {
		case "name":
			v, err := document.Read[string](d, name, "a string")
			require.Equal(t, "é", v)
			return err
		case "rate":
			v, err := document.Read[float64](d, name, "a number")
			require.Equal(t, 1e-3, v)
			return err
		case "list":
			return d.List(name, func() error { _, _, err := d.Text(); return err })
		case "numbers":
			v, err := d.Elements(name)
			require.Equal(t, long, v)
			return err
		}
		text, list, err := d.Text()
		require.Equal(t, `{"x": null}`, text)
		require.False(t, list)
		return err
	}))
	require.NoError(t, d.End())
	require.Equal(t, []string{"name", "rate", "list", "numbers", "other"}, seen)
	for text, message := range map[string]string{
		`{"a": 1, "a": 2}`:  `it has "a" twice`,
		`[]`:                "it is a list, expected an object",
		`{"a": "x"}`:        `a is "\"x\"", expected a number`,
		`{"a": null}`:       `a is "null", expected a number`,
		`{"a": 1} 2`:        "there is text after the JSON object",
		"{\"a\": \"\xff\"}": "it is not UTF-8",
	} {
		d, err := document.New(text)
		if err == nil {
			err = d.Object("it", func(name string) error { _, err := document.Read[int](d, name, "a number"); return err })
		}
		if err == nil {
			err = d.End()
		}
		require.EqualError(t, err, message)
	}
}

// Elements reads numbers, truth values, or texts alone.
func TestElements(t *testing.T) {
	for text, ok := range map[string]bool{`["a", "\\\"]", ""]`: true, `[1, [2]]`: true, `[true]`: true, `[]`: true, `["a", 1]`: false, `["a", null]`: false, `[["a"]]`: false, `"a"`: false, `{"a": "b"}`: false} {
		d, err := document.New(text)
		require.NoError(t, err)
		got, err := d.Elements("it")
		require.Equal(t, ok, err == nil, text)
		if ok {
			require.Equal(t, text, got)
		}
	}
}
