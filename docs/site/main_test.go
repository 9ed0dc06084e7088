//lazo:norace
package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinked(t *testing.T) {
	t.Chdir("../..")
	s := &site{pages: map[string]string{"docs/layers.md": "/docs/layers/", "docs/guide/README.md": "/guide/", "loop": "/api/loop/", "examples": "/examples/"}}
	for from, want := range map[string]string{
		"[a](layers.md#dense)":         "[a](/docs/layers/#dense)",
		"[a](guide)":                   "[a](/guide/)",
		"[a](../loop/run.go)":          "[a](/api/loop/)",
		"[a](../examples)":             "[a](/examples/)",
		"[a](../LICENSE)":              "[a](" + source + "blob/main/LICENSE)",
		"[a](#here) [b](https://x.y/)": "[a](#here) [b](https://x.y/)",
		"```\n[a](layers.md)\n```":     "```\n[a](layers.md)\n```",
	} {
		require.Equal(t, want, s.linked(from, "docs"))
	}
}

func TestAddressOf(t *testing.T) {
	for document, want := range map[string]string{
		"README.md": "/", "DESIGN.md": "/docs/design/", "docs/from-keras.md": "/from/keras/", "docs/layers.md": "/docs/layers/",
		"docs/guide/README.md": "/guide/", "docs/guide/03-data.md": "/guide/03-data/",
	} {
		require.Equal(t, want, addressOf(document))
	}
}
