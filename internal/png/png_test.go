package png

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	reference "image/png"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func chunk(name string, body []byte) []byte {
	named := append([]byte(name), body...)
	return binary.BigEndian.AppendUint32(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), named...), crc32.ChecksumIEEE(named))
}

// file returns a PNG with these rows, each after its filter's number, compressed at a level and divided into parts.
func file(w, h int, kind byte, rows []byte, level, parts int) []byte {
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, uint32(w)), uint32(h))
	all := append([]byte(signature), chunk("IHDR", append(header, 8, kind, 0, 0, 0))...)
	var packed bytes.Buffer
	z, _ := zlib.NewWriterLevel(&packed, level)
	_, _ = z.Write(rows)
	_ = z.Close()
	all = append(all, chunk("gAMA", []byte{0, 0, 1, 1})...)
	for i := range parts {
		all = append(all, chunk("IDAT", packed.Bytes()[i*packed.Len()/parts:(i+1)*packed.Len()/parts])...)
	}
	return append(all, chunk("IEND", nil)...)
}

// same reports whether a file was accepted. It checks that the pixels are image/png's, which must accept it too.
func same(t require.TestingT, d *Decoder, file []byte) bool {
	got, ok := d.Decode(file)
	if !ok {
		return false
	}
	want, err := reference.Decode(bytes.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, want.Bounds(), got.Bounds())
	for y := range want.Bounds().Dy() {
		for x := range want.Bounds().Dx() {
			r, g, b, a := want.At(x, y).RGBA()
			r2, g2, b2, a2 := got.At(x, y).RGBA()
			require.Equal(t, [4]uint32{r, g, b, a}, [4]uint32{r2, g2, b2, a2}, "%d, %d", x, y)
		}
	}
	return true
}

// sources are rows of all kinds: noise, which takes long words, runs, which take long copies, and numbers of few kinds.
func source(r *rand.Rand, n int) []byte {
	rows := make([]byte, n)
	kind := r.IntN(4)
	for i := range rows {
		switch kind {
		case 0:
			rows[i] = uint8(r.Uint32())
		case 1:
			rows[i] = uint8(i / 300)
		case 2:
			rows[i] = uint8(r.ExpFloat64() * 8)
		}
		if kind == 3 && i > 100 {
			rows[i] = rows[i-1-r.IntN(3)*33]
		}
	}
	return rows
}

func TestDecode(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var d Decoder
	for range 600 {
		w, h := 1+r.IntN(60), 1+r.IntN(60)
		kind := []byte{0, 2, 6}[r.IntN(3)]
		stride := 1 + w*map[byte]int{0: 1, 2: 3, 6: 4}[kind]
		rows := source(r, stride*h)
		for y := range h {
			rows[y*stride] = uint8(r.IntN(5))
		}
		level := []int{zlib.NoCompression, zlib.BestSpeed, zlib.DefaultCompression, zlib.BestCompression, zlib.HuffmanOnly}[r.IntN(5)]
		require.True(t, same(t, &d, file(w, h, kind, rows, level, 1+r.IntN(3))))
	}
	large := image.NewRGBA(image.Rect(0, 0, 700, 500)) // several blocks, more than is kept
	for i := range large.Pix {
		large.Pix[i] = uint8(i/1000) + uint8(r.IntN(9))
	}
	large.Set(0, 0, color.NRGBA{1, 2, 3, 100})
	var b bytes.Buffer
	require.NoError(t, reference.Encode(&b, large))
	require.True(t, same(t, &d, b.Bytes()))
	require.LessOrEqual(t, cap(d.rows), most)
}

// A file with any byte changed, or cut anywhere, is refused or read as image/png reads it.
func TestDecode_damaged(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var d Decoder
	rows := source(r, 21*9)
	for y := range 9 {
		rows[y*21] = uint8(y % 5)
	}
	good := file(20, 9, 0, rows, zlib.DefaultCompression, 2)
	require.True(t, same(t, &d, good))
	for at := range good {
		require.False(t, same(t, &d, good[:at]))
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << bit
			if !same(t, &d, bad) {
				continue
			}
			require.Contains(t, "IDATgAMA", string(bad[at:at+1]), "all else is summed up")
		}
	}
	for _, other := range [][]byte{nil, good[:8], []byte("GIF89a"), append([]byte(signature), chunk("IEND", nil)...),
		file(20, 9, 0, rows[:100], 9, 1), file(20, 8, 0, rows, 9, 1), file(0, 9, 0, rows, 9, 1), file(1<<30, 1<<30, 2, rows, 9, 1),
		file(20, 9, 0, bytes.Repeat([]byte{5}, 21*9), 9, 1), file(20, 9, 3, rows, 9, 1)} {
		require.False(t, same(t, &d, other))
	}
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, _ = z.Write(rows)
	require.NoError(t, z.Close())
	packed.Bytes()[packed.Len()-1] ^= 1 // the sum of what is unpacked, and a part whose own sum is right
	header := []byte{0, 0, 0, 20, 0, 0, 0, 9, 8, 0, 0, 0, 0}
	bad := append(append([]byte(signature), chunk("IHDR", header)...), chunk("IDAT", packed.Bytes())...)
	require.False(t, same(t, &d, append(bad, chunk("IEND", nil)...)))
	require.True(t, same(t, &d, good), "what was refused leaves nothing behind")
}

// The stream itself, damaged below the sums of its parts.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, _ = z.Write(source(r, 31*10))
		_ = z.Close()
		f.Add(b.Bytes())
	}
	var d Decoder
	f.Fuzz(func(t *testing.T, packed []byte) {
		header := []byte{0, 0, 0, 10, 0, 0, 0, 10, 8, 2, 0, 0, 0}
		same(t, &d, append(append(append([]byte(signature), chunk("IHDR", header)...), chunk("IDAT", packed)...), chunk("IEND", nil)...))
	})
}

func BenchmarkDecode(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	picture := image.NewRGBA(image.Rect(0, 0, 128, 128))
	for i := range picture.Pix {
		picture.Pix[i] = uint8(100 + 20*r.NormFloat64())
		if i%4 == 3 {
			picture.Pix[i] = 255
		}
	}
	var file bytes.Buffer
	require.NoError(b, reference.Encode(&file, picture))
	b.Run("this", func(b *testing.B) {
		var d Decoder
		for b.Loop() {
			_, ok := d.Decode(file.Bytes())
			require.True(b, ok)
		}
	})
	b.Run("image/png", func(b *testing.B) {
		for b.Loop() {
			_, err := reference.Decode(bytes.NewReader(file.Bytes()))
			require.NoError(b, err)
		}
	})
}
