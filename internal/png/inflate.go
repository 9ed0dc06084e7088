package png

import (
	"encoding/binary"
	"hash/adler32"
	"math/bits"
)

// The first 10 bits of a word select the word or a second table: one table of 15 bits would take too long to fill.
const (
	firstBits = 10
	mostBits  = 15
	mostCodes = 288
	// room for two codes, the fewest of a complete code, in each second table
	secondSize = mostCodes / 2 << (mostBits - firstBits)
)

// entry is a symbol and its word's length (symbol<<8 | bits), or 0. With the bit linked it is a second table's start
// and size in bits.
type entry uint32

const linked entry = 1 << 31

type code struct {
	first  [1 << firstBits]entry
	second [secondSize]entry
}

// build accepts the codes of compress/flate: complete codes, a single word of one bit, or none.
func (c *code) build(lengths []uint8) bool {
	var count, next [mostBits + 1]int
	most := 0
	for _, n := range lengths {
		count[n]++
		most = max(most, int(n))
	}
	clear(c.first[:])
	if most == 0 {
		return true
	}
	count[0] = 0
	sum := 0
	for n := 1; n <= most; n++ {
		sum <<= 1
		next[n] = sum
		sum += count[n]
	}
	if sum != 1<<most && !(sum == 1 && most == 1) {
		return false
	}
	taken := 0
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		word := int(bits.Reverse16(uint16(next[n])) >> (16 - n))
		next[n]++
		e := entry(symbol)<<8 | entry(n)
		if n <= firstBits {
			for at := word; at < len(c.first); at += 1 << n {
				c.first[at] = e
			}
			continue
		}
		rest := uint(most - firstBits)
		link := &c.first[word&(1<<firstBits-1)]
		if *link == 0 {
			if taken+1<<rest > len(c.second) {
				return false
			}
			*link = linked | entry(taken)<<8 | entry(rest)
			taken += 1 << rest
		}
		start := int(*link&^linked) >> 8
		for at := word >> firstBits; at < 1<<rest; at += 1 << (n - firstBits) {
			c.second[start+at] = e
		}
	}
	return true
}

var (
	lengthBase  = [...]uint16{3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258}
	lengthExtra = [...]uint8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0}
	codeOrder   = [...]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}
)

type inflater struct {
	in                  []byte
	at                  int    // next byte after word
	word                uint64 // unread bits, lowest first
	have                int    // their number; higher bits are 0, or in's bytes from at on
	literals, distances code
	lengths             [mostCodes + 32]uint8
}

// inflate fills to from in, or returns false unless in is exactly one valid zlib stream of that size.
func (f *inflater) inflate(in, to []byte) bool {
	if len(in) < 6 || in[0]&15 != 8 || in[0]>>4 > 7 || in[1]&32 != 0 || binary.BigEndian.Uint16(in)%31 != 0 {
		return false
	}
	f.in, f.at, f.word, f.have = in, 2, 0, 0
	out := 0
	for last := false; !last; {
		f.fill()
		last = f.take(1) == 1
		kind := f.take(2)
		if f.have < 0 {
			return false
		}
		ok := false
		switch kind {
		case 0:
			out, ok = f.stored(to, out)
		case 1:
			ok = f.fixed()
		case 2:
			ok = f.dynamic()
		}
		if ok && kind > 0 {
			out, ok = f.block(to, out)
		}
		if !ok {
			return false
		}
	}
	f.at -= f.have / 8
	return out == len(to) && f.at+4 == len(in) && adler32.Checksum(to) == binary.BigEndian.Uint32(in[f.at:])
}

// fill loads at least 56 bits, or all that remain.
func (f *inflater) fill() {
	if f.at+8 <= len(f.in) {
		f.word |= binary.LittleEndian.Uint64(f.in[f.at:]) << uint(f.have)
		f.at += (63 - f.have) >> 3
		f.have |= 56
		return
	}
	for f.have <= 55 && f.at < len(f.in) {
		f.word &= 1<<uint(f.have) - 1
		f.word |= uint64(f.in[f.at]) << uint(f.have)
		f.at++
		f.have += 8
	}
}

// have is negative after the end.
func (f *inflater) take(n int) int {
	v := int(f.word & (1<<uint(n) - 1))
	f.word >>= uint(n)
	f.have -= n
	return v
}

func (f *inflater) stored(to []byte, out int) (int, bool) {
	f.take(f.have & 7)
	f.at -= f.have / 8
	f.word, f.have = 0, 0
	if f.at+4 > len(f.in) {
		return 0, false
	}
	n, inverse := int(binary.LittleEndian.Uint16(f.in[f.at:])), int(binary.LittleEndian.Uint16(f.in[f.at+2:]))
	f.at += 4
	if n != ^inverse&0xffff || n > len(f.in)-f.at || n > len(to)-out {
		return 0, false
	}
	copy(to[out:], f.in[f.at:f.at+n])
	f.at += n
	return out + n, true
}

func (f *inflater) fixed() bool {
	for i := range f.lengths {
		switch {
		case i < 144:
			f.lengths[i] = 8
		case i < 256:
			f.lengths[i] = 9
		case i < 280:
			f.lengths[i] = 7
		case i < mostCodes:
			f.lengths[i] = 8
		default:
			f.lengths[i] = 5
		}
	}
	return f.literals.build(f.lengths[:mostCodes]) && f.distances.build(f.lengths[mostCodes:])
}

func (f *inflater) dynamic() bool {
	f.fill()
	literals, distances, lengths := f.take(5)+257, f.take(5)+1, f.take(4)+4
	if f.have < 0 || literals > 286 || distances > 30 {
		return false
	}
	var short [19]uint8
	for _, i := range codeOrder[:lengths] {
		f.fill()
		short[i] = uint8(f.take(3))
	}
	if f.have < 0 || !f.literals.build(short[:]) {
		return false
	}
	n := literals + distances
	for i := 0; i < n; {
		f.fill()
		e := f.literals.first[f.word&(1<<firstBits-1)]
		f.take(int(e & 255))
		if e == 0 || f.have < 0 {
			return false
		}
		symbol := int(e >> 8)
		if symbol < 16 {
			f.lengths[i] = uint8(symbol)
			i++
			continue
		}
		again, v := 0, uint8(0)
		switch symbol {
		case 16:
			if i == 0 {
				return false
			}
			again, v = 3+f.take(2), f.lengths[i-1]
		case 17:
			again = 3 + f.take(3)
		case 18:
			again = 11 + f.take(7)
		}
		if f.have < 0 || i+again > n {
			return false
		}
		for range again {
			f.lengths[i] = v
			i++
		}
	}
	return f.literals.build(f.lengths[:literals]) && f.distances.build(f.lengths[literals:n])
}

func (f *inflater) block(to []byte, out int) (int, bool) {
	word, have, at, in := f.word, f.have, f.at, f.in
	for {
		if have < 48 { // enough for a length and a distance
			if at+8 <= len(in) {
				word |= binary.LittleEndian.Uint64(in[at:]) << uint(have&63)
				at += (63 - have) >> 3
				have |= 56
			} else {
				f.word, f.have, f.at = word, have, at
				f.fill()
				word, have, at = f.word, f.have, f.at
			}
		}
		e := f.literals.first[word&(1<<firstBits-1)]
		if e&linked != 0 {
			e = f.literals.second[int(e&^linked>>8)+int(word>>firstBits&(1<<uint(e&31)-1))]
		}
		word >>= e & 31
		if have -= int(e & 31); e == 0 || have < 0 {
			return 0, false
		}
		symbol := int(e >> 8)
		if symbol < 256 {
			if out >= len(to) {
				return 0, false
			}
			to[out] = uint8(symbol)
			out++
			continue
		}
		if symbol == 256 {
			f.word, f.have, f.at = word, have, at
			return out, true
		}
		if symbol -= 257; symbol >= len(lengthBase) {
			return 0, false
		}
		extra := uint(lengthExtra[symbol])
		n := int(lengthBase[symbol]) + int(word&(1<<extra-1))
		word >>= extra
		have -= int(extra)
		e = f.distances.first[word&(1<<firstBits-1)]
		if e&linked != 0 {
			e = f.distances.second[int(e&^linked>>8)+int(word>>firstBits&(1<<uint(e&31)-1))]
		}
		word >>= e & 31
		have -= int(e & 31)
		d := int(e >> 8)
		if e == 0 || d > 29 {
			return 0, false
		}
		distance := d + 1
		if d > 3 {
			extra = uint(d/2 - 1)
			distance = (2+d&1)<<extra + int(word&(1<<extra-1)) + 1
			word >>= extra
			have -= int(extra)
		}
		if have < 0 || distance > out || n > len(to)-out {
			return 0, false
		}
		from := out - distance
		if distance >= n {
			copy(to[out:out+n], to[from:])
		} else { // overlapping: copied bytes are copied again
			for i := range n {
				to[out+i] = to[from+i]
			}
		}
		out += n
	}
}
