package text

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// Cut and changed models of sentencepiece are errors, and never panics.
func TestOpen_brokenModels(t *testing.T) {
	for name, content := range kindsOf(t).Models {
		model, err := hex.DecodeString(content)
		require.NoError(t, err)
		for n := 0; n < len(model); n += 997 {
			_, _ = readSentencePiece(model[:n])
			changed := []byte(string(model))
			changed[n] ^= 0x55
			if read, err := readSentencePiece(changed); err == nil {
				_, _ = read.Encode("the loop\u00a0takes É ｶﾞ")
			}
		}
		for number, message := range map[protowire.Number]string{1: "expected a text once", 2: "field 2 of a message", 3: "field 3 of a message", 5: "it has a denormalizer"} {
			part := protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 3)
			if number == 5 {
				part = protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), []byte("x"))
			}
			_, err := readSentencePiece(protowire.AppendBytes(protowire.AppendTag([]byte(string(model)), number, protowire.BytesType), part))
			require.ErrorContains(t, err, message, name)
		}
	}
	const varint, text, fixed = protowire.VarintType, protowire.BytesType, protowire.Fixed32Type
	tag := func(number protowire.Number, kind protowire.Type) []byte {
		return protowire.AppendTag(nil, number, kind)
	}
	of := func(number protowire.Number, parts ...[]byte) []byte {
		return protowire.AppendBytes(tag(number, text), bytes.Join(parts, nil))
	}
	is := func(number protowire.Number, value uint64) []byte {
		return protowire.AppendVarint(tag(number, varint), value)
	}
	whole := of(1, of(1, []byte("<unk>")), is(3, unknownPiece))
	for _, row := range []struct {
		part    []byte
		message string
	}{
		{of(2, is(3, 3)), "its model_type is 3"}, {of(2, is(3, 1), is(3, 2)), "field 3 of a message has the wire type 0 or comes twice"},
		{append(of(2, is(3, 1)), of(2)...), "field 2 of a message has the wire type 2 or comes twice"}, {of(2, of(3, nil)), "field 3 of a message has the wire type 2"},
		{of(2, of(35, nil)), "field 35"}, {of(2, of(24, nil)), "field 24"}, {of(2, is(44, 1)), "field 44"}, {of(3, is(2, 1)), "field 2"}, {of(3, of(3, nil)), "field 3"}, {of(3, of(4, nil)), "field 4"},
		{of(3, of(5, nil)), "field 5"}, {of(5, is(2, 1)), "field 2"}, {is(1, 1), "field 1"}, {is(3, 1), "field 3"}, {is(5, 1), "field 5"}, {of(1, is(1, 1)), "field 1"}, {of(1, of(1, []byte("x")), is(2, 1)), "field 2"},
		{of(1, of(1, []byte("x")), protowire.AppendFixed32(tag(3, fixed), 1)), "field 3 of a message has the wire type 5"},
		{of(2, of(30, []byte("a")), of(30, []byte("b")), is(3, 1)), ""}, // repeated, and not read
	} {
		_, err := readSentencePiece(append(bytes.Clone(whole), row.part...))
		if row.message == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, row.message)
	}
	_, err := readSentencePiece(nil)
	require.ErrorContains(t, err, "it has 0 pieces, of which none is unknown")
}
