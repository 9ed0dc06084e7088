// Package png decodes the most common PNG images: grey, RGB or RGBA with 8 bits per channel, not interlaced.
//
// It must accept nothing that image/png refuses, and return its pixels: a fuzz test compares both. The caller passes
// refused files to image/png. The formats are RFC 1950, RFC 1951 and the PNG specification (ISO/IEC 15948).
package png

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
)

type Decoder struct {
	inflater inflater
	packed   []byte
	rows     []byte // each after its filter's number
}

const most = 1 << 20

const signature = "\x89PNG\r\n\x1a\n"

type RGB struct {
	// Pix has three bytes per pixel, with rows Stride bytes apart.
	Pix    []uint8
	Stride int
	Rect   image.Rectangle
}

func (p *RGB) ColorModel() color.Model { return color.RGBAModel }
func (p *RGB) Bounds() image.Rectangle { return p.Rect }
func (p *RGB) PixOffset(x, y int) int  { return (y-p.Rect.Min.Y)*p.Stride + (x-p.Rect.Min.X)*3 }

func (p *RGB) At(x, y int) color.Color {
	if !(image.Point{X: x, Y: y}.In(p.Rect)) {
		return color.RGBA{}
	}
	at := p.PixOffset(x, y)
	return color.RGBA{p.Pix[at], p.Pix[at+1], p.Pix[at+2], 255}
}

// Decode returns an [*image.Gray], [*image.NRGBA] or [*RGB] that is valid until the next call, or false for other or
// malformed files. The caller checks the number of pixels.
func (d *Decoder) Decode(file []byte) (image.Image, bool) {
	if len(file) < len(signature)+25 || string(file[:len(signature)]) != signature {
		return nil, false
	}
	var header, packed []byte
	parts, before := 0, ""
	for rest := file[len(signature):]; ; {
		if len(rest) < 12 {
			return nil, false
		}
		n := binary.BigEndian.Uint32(rest)
		if uint64(n) > uint64(len(rest)-12) {
			return nil, false
		}
		name, body := string(rest[4:8]), rest[8:8+n]
		if crc32.ChecksumIEEE(rest[4:8+n]) != binary.BigEndian.Uint32(rest[8+n:]) {
			return nil, false
		}
		rest = rest[12+n:]
		switch {
		case (before == "") != (name == "IHDR"), name == "PLTE", name == "tRNS":
			return nil, false
		case name == "IHDR":
			header = body
		case name == "IDAT" && parts > 0 && before != "IDAT":
			return nil, false
		case name == "IDAT" && parts == 0:
			packed = body
			parts++
		case name == "IDAT":
			if parts == 1 {
				d.packed = append(d.packed[:0], packed...)
			}
			d.packed = append(d.packed, body...)
			packed = d.packed
			parts++
		}
		if before = name; name != "IEND" {
			continue
		}
		if n > 0 || parts == 0 {
			return nil, false
		}
		break
	}
	if cap(d.packed) > most {
		d.packed = nil
	}
	return d.image(header, packed)
}

func (d *Decoder) image(header, packed []byte) (image.Image, bool) {
	if len(header) != 13 || !bytes.Equal(header[10:], []byte{0, 0, 0}) || header[8] != 8 {
		return nil, false
	}
	channels := map[byte]int{0: 1, 2: 3, 6: 4}[header[9]]
	w, h := binary.BigEndian.Uint32(header), binary.BigEndian.Uint32(header[4:])
	const side = 1 << 24 // no product overflows
	if channels == 0 || w < 1 || h < 1 || w > side || h > side {
		return nil, false
	}
	stride := 1 + int(w)*channels
	size := stride * int(h)
	if size/1032 > len(packed) { // the compression's limit
		return nil, false
	}
	rows := d.rows
	if cap(rows) < size {
		rows = make([]byte, size)
		if size <= most {
			d.rows = rows
		}
	}
	rows = rows[:size]
	if !d.inflater.inflate(packed, rows) || !unfilter(rows, stride, channels) {
		return nil, false
	}
	box := image.Rect(0, 0, int(w), int(h))
	switch channels {
	case 1:
		return &image.Gray{Pix: rows[1:], Stride: stride, Rect: box}, true
	case 3:
		return &RGB{Pix: rows[1:], Stride: stride, Rect: box}, true
	}
	return &image.NRGBA{Pix: rows[1:], Stride: stride, Rect: box}, true
}

func unfilter(rows []byte, stride, width int) bool {
	above := make([]byte, stride-1)
	for ; len(rows) > 0; rows = rows[stride:] {
		row := rows[1:stride]
		above = above[:len(row)]
		switch rows[0] {
		case 0:
		case 1:
			for i := width; i < len(row); i++ {
				row[i] += row[i-width]
			}
		case 2:
			for i, v := range above {
				row[i] += v
			}
		case 3:
			for i := range min(width, len(row)) {
				row[i] += above[i] / 2
			}
			for i := width; i < len(row); i++ {
				row[i] += uint8((int(row[i-width]) + int(above[i])) / 2)
			}
		case 4:
			if width == 3 {
				paeth3(row, above)
			} else {
				paeth(row, above, width)
			}
		default:
			return false
		}
		above = row
	}
	return true
}

func paeth(row, above []byte, width int) {
	for c := range width {
		left, corner := int32(0), int32(0)
		for i := c; i < len(row); i += width {
			up := int32(above[i])
			left = int32(uint8(nearest(left, up, corner) + int32(row[i])))
			row[i] = uint8(left)
			corner = up
		}
	}
}

// paeth3 handles three channels at once.
func paeth3(row, above []byte) {
	var left0, left1, left2, corner0, corner1, corner2 int32
	for len(row) >= 3 && len(above) >= 3 {
		up0, up1, up2 := int32(above[0]), int32(above[1]), int32(above[2])
		left0 = int32(uint8(nearest(left0, up0, corner0) + int32(row[0])))
		left1 = int32(uint8(nearest(left1, up1, corner1) + int32(row[1])))
		left2 = int32(uint8(nearest(left2, up2, corner2) + int32(row[2])))
		row[0], row[1], row[2] = uint8(left0), uint8(left1), uint8(left2)
		corner0, corner1, corner2 = up0, up1, up2
		row, above = row[3:], above[3:]
	}
}

// the first of the values nearest to left + up - corner
func nearest(left, up, corner int32) int32 {
	a, b := up-corner, left-corner
	c := a + b
	a, b, c = (a^a>>31)-a>>31, (b^b>>31)-b>>31, (c^c>>31)-c>>31
	v := corner
	if b <= c {
		v = up
	}
	if a <= b && a <= c {
		v = left
	}
	return v
}
