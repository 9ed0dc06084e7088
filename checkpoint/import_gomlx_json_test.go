package checkpoint_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
)

func TestF27_hostileGoMLX(t *testing.T) {
	_, _, err := importOf(t, gomlxText, gomlxBin())
	require.NoError(t, err)
	edit := func(old, new string) string {
		require.Contains(t, gomlxText, old)
		return strings.Replace(gomlxText, old, new, 1)
	}
	texts := map[string]string{
		"nothing": "", "null": "null", "a list": "[]", "an empty object": "{}", "cut": gomlxText[:90], "more behind": gomlxText + "{}",
		"a negative dim":            edit("[2,3]", "[-2,-3]"),
		"one negative dim":          edit("[2,3]", "[-1]"),
		"dims that overflow":        edit("[2,3]", "[4611686018427387904,4]"),
		"dims that overflow to fit": edit("[2,3]", "[4294967296,4294967296,6]"),
		"a dim above int64":         edit("[2,3]", "[9223372036854775808]"),
		"a huge dim":                edit("[2,3]", "[1000000000000]"),
		"a huge dim and its length": strings.Replace(edit("[2,3]", "[1000000000000]"), `"Length":24`, `"Length":4000000000000`, 1),
		"half a dim":                edit("[2,3]", "[2.5]"),
		"a text for a dim":          edit("[2,3]", `["6"]`),
		"a nested dim":              edit("[2,3]", "[[6]]"),
		"an object for dims":        edit("[2,3]", "{}"),
		"rank 33":                   edit("[2,3]", "[6"+strings.Repeat(",1", 32)+"]"),
		"rank 1e6":                  edit("[2,3]", "[6"+strings.Repeat(",1", 1_000_000)+"]"),
		"no dims":                   edit(`"Dimensions":[2,3],`, ""),
		"an unknown dtype":          edit("Float32", "Float33"),
		"a dtype without a place":   edit("Float32", "Complex128"),
		"no dtype":                  edit("Float32", "InvalidDType"),
		"a number for a dtype":      edit(`"Float32"`, "11"),
		"a length too short":        edit(`"Length":24`, `"Length":20`),
		"a negative length":         edit(`"Length":24`, `"Length":-24`),
		"a position before":         edit(`"Pos":24`, `"Pos":0`),
		"a negative position":       edit(`"Pos":0`, `"Pos":-1`),
		"a name without a prefix":   edit("var://w", "/w"),
		"a name without a scope":    edit("var://w", "var:w"),
		"an empty name":             edit("var://w", ""),
		"a long name":               edit("var://w", "var://"+strings.Repeat("w", 5000)),
		"a name twice":              edit("var:/a/b", "var://w"),
		"a name spelled otherwise":  edit("var://w", `var:\/\/w`),
		"an unknown field":          edit(`"BinFormat"`, `"Path":"/etc/passwd","BinFormat"`),
		"a field twice":             edit(`"BinFormat"`, `"Params":[],"BinFormat"`),
		"a field in other letters":  edit(`"Params"`, `"params"`),
		"variables of an object":    edit(`"Variables":[`, `"Variables":{},"x":[`),
		"a variable that is null":   edit(`"Variables":[`, `"Variables":[null,`),
		"gzip that is not":          edit("uncompressed", "gzip"),
		"another form":              edit("uncompressed", "zstd"),
		"a form of a number":        edit(`"uncompressed"`, "1"),
		"a parameter twice":         edit(`{"Scope"`, `{"Scope":"/","Key":"lr","Value":1,"ValueType":"int"},{"Scope"`),
		"a text for a number":       edit("0.5", `"x"`),
		"an object for a number":    edit("0.5", `{"x":1}`),
		"null for a number":         edit("0.5", `null`),
		"a float for an int":        edit("float64", "int"),
		"a quoted int":              strings.Replace(edit("float64", "int"), "0.5", `"1"`, 1),
		"an int above its type":     strings.Replace(edit("float64", "int8"), "0.5", `128`, 1),
		"a number of no float32":    strings.Replace(edit("float64", "float32"), "0.5", `1e39`, 1),
		"a text for a bool":         strings.Replace(edit("float64", "bool"), "0.5", `"true"`, 1),
		"base64 that is none":       strings.Replace(edit("float64", "[]uint8"), "0.5", `"?"`, 1),
		"no type of a parameter":    edit(`,"ValueType":"float64"`, ""),
		"deep":                      edit("0.5", strings.Repeat("[", 70)+strings.Repeat("]", 70)),
		"very deep":                 edit("0.5", strings.Repeat(`{"a":`, 100_000)),
		"not UTF-8":                 edit("var://w", "var://\xff"),
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			_, _, err := importOf(t, text, gomlxBin())
			var damaged *checkpoint.DamagedError
			require.ErrorAs(t, err, &damaged)
			require.Less(t, len(err.Error()), 1000)
		})
	}
	for text, want := range map[string]string{
		edit(`"Dimensions":null,`, ""): `no field "Dimensions"`, // the variable before has one
		edit(`"var://w"`, "7"):         "expected a string, got 7",
	} {
		_, _, err := importOf(t, text, gomlxBin())
		require.ErrorContains(t, err, want)
	}
	inGzip := edit("uncompressed", "gzip")
	good := zipped(t, gomlxBin())
	_, _, err = importOf(t, inGzip, good)
	require.NoError(t, err)
	bins := map[string]struct {
		text string
		bin  []byte
	}{
		"raw, too long":             {gomlxText, append(gomlxBin(), 0)},
		"gzip, too long":            {inGzip, zipped(t, append(gomlxBin(), 0))},
		"gzip, too short":           {inGzip, zipped(t, gomlxBin()[:31])},
		"gzip with something after": {inGzip, append(bytes.Clone(good), "more"...)},
		"gzip with another member":  {inGzip, append(bytes.Clone(good), good[22:]...)},
		"a header alone":            {inGzip, good[:22]},
		"v0.28's header alone":      {inGzip, []byte(gomlxHeaders[1])},
		"three s":                   {inGzip, bytes.Replace(good, []byte("s\x04"), []byte("sss\x04"), 1)},
		"another compression":       {inGzip, bytes.Replace(good, []byte("gzip"), []byte("zstd"), 1)},
		"raw with a header of gzip": {gomlxText, good},
	}
	for name, c := range bins {
		t.Run(name, func(t *testing.T) {
			_, _, err := importOf(t, c.text, c.bin)
			var damaged *checkpoint.DamagedError
			require.ErrorAs(t, err, &damaged)
		})
	}
	for n := range gomlxBin() {
		_, _, err := importOf(t, gomlxText, gomlxBin()[:n])
		require.Error(t, err)
	}
	// Of gzip each length is refused, and each byte flipped is found, but for those of its header that mean nothing.
	lengths := len(gomlxBin())
	for _, header := range gomlxHeaders {
		good, silent := zippedBehind(t, header, gomlxBin()), 0
		for n := range good {
			_, _, err := importOf(t, inGzip, good[:n])
			require.Error(t, err, "%d bytes", n)
			flipped := bytes.Clone(good)
			flipped[n] ^= 0x41
			if c, _, err := importOf(t, inGzip, flipped); err == nil {
				n -= len(header)
				require.True(t, n >= 3 && n < 10, "byte %d of gzip", n) // flags, time, level, system
				require.Equal(t, gomlxBin()[:24], c.Tensors[1].Data)
				silent++
			}
		}
		require.Equal(t, 7, silent)
		lengths += len(good)
	}
	t.Logf("F27: %d hostile files of JSON, %d of values and %d shorter ones of GoMLX's checkpoints: all refused", len(texts), len(bins), lengths)
}
