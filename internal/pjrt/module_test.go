package pjrt

import (
	"testing"
)

func FuzzParseModule(f *testing.F) {
	f.Add([]byte("\x22\x07\x0a\x05\x10\x0b\x1a\x01\x04"))
	f.Add([]byte("\x42\x07\x0a\x05\x0a\x01\x00\x10\x00"))
	f.Fuzz(func(_ *testing.T, module []byte) { _, _ = parseModule(module) })
}
