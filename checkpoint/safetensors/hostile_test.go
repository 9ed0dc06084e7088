package safetensors_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// slack is the memory that a reader may take in addition to twice the file.
const slack = 64 << 20

// one is a header with a tensor "a" of these fields.
func one(fields string) string {
	return `{"a":{` + fields + `}}`
}

// u8Fields are those of a tensor of one byte.
const u8Fields = `"dtype":"U8","shape":[1],"data_offsets":[0,1]`

var hostile = map[string]struct {
	file    []byte
	message string
	cause   error // that errors.Is must find
}{
	"empty file":        {nil, "byte 0: the length of the header takes 8 bytes, and the file has 0: the file ends too early: copy or download it again", io.ErrUnexpectedEOF},
	"7 bytes":           {make([]byte, 7), "byte 7: the length", io.ErrUnexpectedEOF},
	"no header":         {make([]byte, 8), "byte 8: the header's JSON ends, expected '{'", nil},
	"header beyond":     {append(framed("")[:0], 9, 0, 0, 0, 0, 0, 0, 0, '{', '}'), "a header of 9 bytes does not fit into a file of 10", io.ErrUnexpectedEOF},
	"a table":           {[]byte("a,b,c\n1,2,3\n"), `it begins with "a,b,c\n1,": it is truncated, or not a safetensors file`, io.ErrUnexpectedEOF},
	"HTML":              {[]byte("\n<!DOCTYPE html><html></html>"), "it is a page of HTML or XML, expected a safetensors file: download it again", nil},
	"Git LFS":           {[]byte("version https://git-lfs.github.com/spec/v1"), "a pointer of Git LFS", nil},
	"zip":               {[]byte("PK\x03\x04\x14\x00\x00\x00\x00\x00"), "a zip archive, as PyTorch", nil},
	"pickle":            {[]byte("\x80\x04\x958\x01\x00\x00\x00\x00\x00"), "a Python pickle, expected a safetensors file: save the tensors again by the Python package safetensors", nil},
	"gzip":              {append([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00"), make([]byte, 600<<10)...), "a gzip archive", nil},
	"PNG":               {[]byte("\x89PNG\r\n\x1a\n\x00\x00"), "a PNG image", nil},
	"JSON":              {[]byte(`{"a":1}`), "it is JSON, expected", nil},
	"header of 2^64-1":  {bytes.Repeat([]byte{255}, 100), "a header of 18446744073709551615 bytes", io.ErrUnexpectedEOF},
	"header of 2^63":    {[]byte{0, 0, 0, 0, 0, 0, 0, 128, '{', '}'}, "a header of 9223372036854775808 bytes", io.ErrUnexpectedEOF},
	"not JSON":          {framed(`{x}`), `byte 9: 'x' in the header's JSON, expected '"'`, nil},
	"null":              {framed(`null`), `expected '{' as its first byte`, nil},
	"array":             {framed(`[]`), `expected '{' as its first byte`, nil},
	"space first":       {framed(` {}`), `byte 8: ' ' in the header's JSON, expected '{' as its first byte`, nil},
	"byte order mark":   {framed("\ufeff{}"), `expected '{' as its first byte`, nil},
	"not UTF-8":         {framed("{\"a\xff\":{}}"), "byte 11: byte 0xff is not UTF-8", nil},
	"surrogate bytes":   {framed("{\"\xed\xa0\x80\":{}}"), "is not UTF-8", nil},
	"overlong":          {framed("{\"\xc0\xaf\":{}}"), "is not UTF-8", nil},
	"half surrogate":    {framed(`{"\ud800":{`+u8Fields+`}}`, 1), "half a surrogate pair", nil},
	"turned surrogates": {framed(`{"\udc00\ud800":{`+u8Fields+`}}`, 1), "half a surrogate pair", nil},
	"unknown escape":    {framed(`{"\x41":{`+u8Fields+`}}`, 1), "that JSON does not have", nil},
	"short escape":      {framed(`{"\u12`), "expected the end of a string", nil},
	"escape at the end": {framed(`{"\`), "expected the end of a string", nil},
	"line in a name":    {framed("{\"a\nb\":{" + u8Fields + "}}"), "expected no control character in a string", nil},
	"escaped line":      {framed("{\"a\\\nb\":{" + u8Fields + "}}"), "that JSON does not have", nil},
	"line after escape": {framed("{\"a\\t\nb\":{" + u8Fields + "}}"), "control character", nil},
	"ends in an object": {framed(`{"a":{`), "the header's JSON ends", nil},
	"ends in an array":  {framed(`{"a":{"shape":[1,`), "the header's JSON ends", nil},
	"two objects":       {framed(`{}{}`), "expected only spaces after the object", nil},
	"zero after":        {framed("{}\x00"), "expected only spaces after the object", nil},
	"comma at the end":  {framed(`{"a":{`+u8Fields+`},}`, 1), `expected '"'`, nil},
	"deep objects":      {framed(strings.Repeat(`{"a":`, 1_000_000)), `tensor "a": unknown field "a"`, nil},
	"deep arrays":       {framed(one(`"shape":` + strings.Repeat(`[`, 1_000_000))), "expected a whole number", nil},
	"tensor no object":  {framed(`{"a":1}`), `tensor "a": '1' in the header's JSON, expected '{'`, nil},
	"tensor as array":   {framed(`{"a":["U8",[1],[0,1]]}`, 1), "expected '{'", nil},
	"same name twice":   {framed(`{"a":{`+u8Fields+`},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 1, 2), `tensor "a": the header has two of this name`, nil},
	"same name escaped": {framed(`{"a":{`+u8Fields+`},"\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 1, 2), `two of this name`, nil},
	"same name empty":   {framed(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`), `two of this name`, nil},
	"field twice":       {framed(one(`"dtype":"U8",`+u8Fields), 1), `byte 27: tensor "a": a second field dtype`, nil},
	"shape twice":       {framed(one(u8Fields+`,"shape":[1]`), 1), `a second field shape`, nil},
	"offsets twice":     {framed(one(u8Fields+`,"data_offsets":[0,1]`), 1), `a second field data_offsets`, nil},
	"unknown field":     {framed(one(u8Fields+`,"stride":[1]`), 1), `unknown field "stride"`, nil},
	"field of old":      {framed(one(`"dtype":"U8","shape":[1],"offsets":[0,1]`), 1), `unknown field "offsets"`, nil},
	"field in capitals": {framed(one(`"DType":"U8"`)), `unknown field "DType"`, nil},
	"no dtype":          {framed(one(`"shape":[1],"data_offsets":[0,1]`), 1), "no field dtype", nil},
	"no shape":          {framed(one(`"dtype":"U8","data_offsets":[0,1]`), 1), "no field shape", nil},
	"no offsets":        {framed(one(`"dtype":"U8","shape":[1]`), 1), "0 data_offsets, expected a begin and an end", nil},
	"unknown dtype":     {framed(one(`"dtype":"F128","shape":[1],"data_offsets":[0,16]`), make([]byte, 16)...), `byte 22: tensor "a": unknown dtype "F128", expected one of BOOL`, nil},
	"dtype number":      {framed(one(`"dtype":1`)), `expected '"'`, nil},
	"dtype empty":       {framed(one(`"dtype":""`)), `unknown dtype ""`, nil},
	"shape null":        {framed(one(`"dtype":"U8","shape":null`)), `expected '['`, nil},
	"negative":          {framed(one(`"dtype":"U8","shape":[-1],"data_offsets":[0,1]`), 1), "'-' in the header's JSON, expected a whole number", nil},
	"two negatives":     {framed(one(`"dtype":"U8","shape":[-1,-1],"data_offsets":[0,1]`), 1), "expected a whole number", nil},
	"fraction":          {framed(one(`"dtype":"U8","shape":[1.0],"data_offsets":[0,1]`), 1), "'.' in the header's JSON", nil},
	"exponent":          {framed(one(`"dtype":"U8","shape":[1e0],"data_offsets":[0,1]`), 1), "'e' in the header's JSON", nil},
	"leading zero":      {framed(one(`"dtype":"U8","shape":[01],"data_offsets":[0,1]`), 1), "a leading zero", nil},
	"number as text":    {framed(one(`"dtype":"U8","shape":["1"],"data_offsets":[0,1]`), 1), "expected a whole number", nil},
	"2^63":              {framed(one(`"dtype":"U8","shape":[9223372036854775808]`)), "above 9223372036854775807", safetensors.ErrLimit},
	"2^64+1":            {framed(one(`"dtype":"U8","shape":[18446744073709551617],"data_offsets":[0,1]`), 1), "above 9223372036854775807", safetensors.ErrLimit},
	"huge":              {framed(one(`"dtype":"U8","shape":[` + strings.Repeat("9", 1000) + `]`)), "above 9223372036854775807", safetensors.ErrLimit},
	"product overflows": {framed(one(`"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]`)), "overflows an integer", safetensors.ErrLimit},
	"bytes overflow":    {framed(one(`"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]`)), "overflows an integer", safetensors.ErrLimit},
	"overflow by zero":  {framed(one(`"dtype":"U8","shape":[0,9223372036854775807,9223372036854775807],"data_offsets":[0,0]`)), "overflows an integer", safetensors.ErrLimit},
	"claims 1 EiB":      {framed(one(`"dtype":"U8","shape":[1000000000000000000],"data_offsets":[0,1000000000000000000]`)), "do not fit into the 0 that are left", io.ErrUnexpectedEOF},
	"rank":              {framed(one(`"dtype":"U8","shape":[`+strings.Repeat("1,", 32)+`1],"data_offsets":[0,1]`), 1), "more than 32 axes", safetensors.ErrLimit},
	"rank of 1e6":       {framed(one(`"dtype":"U8","shape":[`+strings.Repeat("1,", 1e6)+`1],"data_offsets":[0,1]`), 1), "more than 32 axes", safetensors.ErrLimit},
	"long name":         {framed(`{"`+strings.Repeat("n", 4097)+`":{`+u8Fields+`}}`, 1), "(4097 bytes), expected at most 4096 bytes", safetensors.ErrLimit},
	"bits":              {framed(one(`"dtype":"F4","shape":[3],"data_offsets":[0,2]`), 1, 2), "take 12 bits, expected whole bytes", nil},
	"size":              {framed(one(`"dtype":"F32","shape":[2],"data_offsets":[0,7]`), make([]byte, 7)...), "data_offsets [0 7] hold 7 bytes, expected 8 for dims [2] of F32", nil},
	"one offset":        {framed(one(`"dtype":"U8","shape":[1],"data_offsets":[0]`), 1), "1 data_offsets, expected a begin and an end", nil},
	"three offsets":     {framed(one(`"dtype":"U8","shape":[1],"data_offsets":[0,1,2]`), 1), "more than 2 data_offsets", nil},
	"turned offsets":    {framed(one(`"dtype":"U8","shape":[1],"data_offsets":[1,0]`), 1), "[1 0] end before they begin", nil},
	"negative offset":   {framed(one(`"dtype":"U8","shape":[1],"data_offsets":[-1,0]`), 1), "expected a whole number", nil},
	"offset at the end": {framed(one(`"dtype":"U8","shape":[1],"data_offsets":[9223372036854775806,9223372036854775807]`), 1), "begin at 9223372036854775806, expected 0", nil},
	"hole at the start": {framed(one(`"dtype":"U8","shape":[1],"data_offsets":[1,2]`), 1, 2), "begin at 1, expected 0, where the tensor before it ends", nil},
	"hole":              {framed(`{"a":{`+u8Fields+`},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 1, 2, 3), `tensor "b": its data_offsets begin at 2, expected 1`, nil},
	"overlap":           {framed(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 1, 2, 3), `tensor "b": its data_offsets begin at 1, in another tensor`, nil},
	"same bytes":        {framed(`{"a":{`+u8Fields+`},"b":{`+u8Fields+`}}`, 1), "in another tensor, which ends at 1", nil},
	"too long":          {framed(one(`"dtype":"U8","shape":[3],"data_offsets":[0,3]`), 1, 2), "its 3 bytes do not fit into the 2 that are left", io.ErrUnexpectedEOF},
	"bytes after":       {framed(one(u8Fields), 1, 2), "1 bytes belong to no tensor", nil},
	"only bytes":        {framed(`{}`, 1), "1 bytes belong to no tensor", nil},
	"metadata null":     {framed(`{"__metadata__":null}`), "expected '{'", nil},
	"metadata number":   {framed(`{"__metadata__":{"a":1}}`), `expected '"'`, nil},
	"metadata object":   {framed(`{"__metadata__":{"a":{}}}`), `expected '"'`, nil},
	"metadata twice":    {framed(`{"__metadata__":{},"__metadata__":{}}`), "a second __metadata__", nil},
	"metadata escaped":  {framed(`{"__metadata__":{},"\u005f_metadata__":{}}`), "a second __metadata__", nil},
	"metadata key":      {framed(`{"__metadata__":{"a":"1","a":"2"}}`), `__metadata__ has "a" twice`, nil},
}

// bombSize is the length of the headers of TestF27_Memory.
var bombSize = 4 << 20

// Headers that are valid, or nearly, and made to take much memory. In the short form the 64 MB and the limits are
// scaled down with the header, so that it shows the same.
//
//lazo:norace
func TestF27_Memory(t *testing.T) {
	repeat := func(member func(i int) string) string {
		var b strings.Builder
		b.WriteString("{")
		for i := 0; b.Len() < bombSize-5000; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(member(i))
		}
		b.WriteString("}")
		return b.String()
	}
	none := `{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`
	all := map[string]string{
		"many short": repeat(func(i int) string { return fmt.Sprintf(`"%x":%s`, i, none) }),
		"many axes": repeat(func(i int) string {
			return fmt.Sprintf(`"%x":{"dtype":"U8","shape":[0%s],"data_offsets":[0,0]}`, i, strings.Repeat(",1", 31))
		}),
		"escaped names":     repeat(func(i int) string { return fmt.Sprintf(`"\n%x":%s`, i, none) }),
		"long names":        repeat(func(i int) string { return fmt.Sprintf(`"\n%04090x":%s`, i, none) }),
		"metadata":          `{"__metadata__":` + repeat(func(i int) string { return fmt.Sprintf(`"%x":""`, i) }) + `}`,
		"metadata escaped":  `{"__metadata__":` + repeat(func(i int) string { return fmt.Sprintf(`"\n%x":"\n"`, i) }) + `}`,
		"one long text":     `{"__metadata__":{"":"` + strings.Repeat("\\n", bombSize/2) + `"}}`,
		"one long name":     `{"` + strings.Repeat("\\n", bombSize/2) + `":` + none + `}`,
		"colons":            `{` + strings.Repeat(":", bombSize),
		"unsorted":          repeat(func(i int) string { return fmt.Sprintf(`"%x":%s`, i*7919%104729, none) }),
		"only white space":  `{` + strings.Repeat(" ", bombSize),
		"a thousand digits": repeat(func(i int) string { return fmt.Sprintf(`"%d":{"dtype":"U8","shape":[%01000d]}`, i, 1) }),
	}
	scale := float64(bombSize) / 100e6
	limits := safetensors.Limits{Metadata: int(100_000 * scale)}
	worst, worstName := 0.0, ""
	for name, header := range all {
		file := framed(header)
		var err error
		taken := allocated(func() {
			_, err = safetensors.NewReader(bytes.NewReader(file), int64(len(file)), limits)
		})
		ratio := float64(taken) / float64(len(file))
		const chunk = 300 << 10 // the piece in which a header is read is not scaled
		require.LessOrEqual(t, float64(taken), 2*float64(len(file))+slack*scale+chunk, "%s: %.2f × the file (%v)", name, ratio, err)
		if ratio > worst {
			worst, worstName = ratio, name
		}
		t.Logf("%-18s %7.2f MB: %.2f × the file; %.80v", name, float64(len(file))/1e6, ratio, err)
	}
	t.Logf("worst of %d: %.2f × the file (%s); allowed 2 × and 64 MB: %.2f × at the limit of 100 MB", len(all), worst, worstName, 2+slack/100e6)
}
