package dist

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A rank may give a request up that was answered meanwhile, or before anybody waited; others go on waiting.
func TestValues_forget(t *testing.T) {
	var v values
	var sent []message
	send := func(m message) { sent = append(sent, m) }
	v.answer(1, message{Kind: kindForget, ID: 1, Key: []byte("k")}, nil)
	v.answer(1, message{Kind: kindGet, ID: 2, Key: []byte("k")}, send)
	v.answer(2, message{Kind: kindGet, ID: 2, Key: []byte("k")}, send)
	v.answer(2, message{Kind: kindGet, ID: 3, Key: []byte("k")}, send)
	v.answer(2, message{Kind: kindForget, ID: 2, Key: []byte("k")}, nil)
	require.Empty(t, sent)
	v.answer(0, message{Kind: kindPut, ID: 1, Key: []byte("k"), Data: []byte("v")}, func(message) {})
	require.Equal(t, []message{{Kind: kindValue, ID: 2, Data: []byte("v")}, {Kind: kindValue, ID: 3, Data: []byte("v")}}, sent)
	require.Empty(t, v.waiting)
	v.answer(1, message{Kind: kindForget, ID: 2, Key: []byte("k")}, nil)
}
