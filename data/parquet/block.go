package parquet

import (
	"encoding/binary"
	"math"
)

// blockRows values fit into the L1 cache.
const blockRows = 512

func (r *rows) inBlocks() bool {
	for _, f := range r.fields {
		if _, texts := f.sink.(*textual); texts || f.list {
			return false
		}
	}
	return true
}

// block decodes up to most rows. If it cannot, it returns 0 and changes nothing: errors come from [rows.take].
func (r *rows) block(most int64) int64 {
	if r.oneByOne > 0 {
		r.oneByOne--
		return 0
	}
	n := min(most, r.left, blockRows)
	for _, c := range r.cursors {
		if c.loaded {
			return 0
		}
		n = min(n, int64(c.left))
	}
	if n < 2 {
		return 0
	}
	if r.next == nil {
		r.next = make([]taken, len(r.cursors))
	}
	next := r.next[:0]
	for k := range r.fields {
		f := &r.fields[k]
		sink := f.sink.(blockSink)
		at, ok := sink.extend(int(n) * f.width)
		for j := 0; ok && j < len(f.cursors); j++ {
			var t taken
			t, ok = f.column(f.cursors[j], &r.places, at+j, int(n))
			next = append(next, t)
		}
		if ok {
			continue
		}
		for _, g := range r.fields[:k] {
			g.sink.(blockSink).shorten(g.sink.len() - int(n)*g.width)
		}
		sink.shorten(at)
		r.oneByOne = n - 1
		return 0
	}
	k := 0
	for _, f := range r.fields {
		for _, c := range f.cursors {
			c.def, c.decoded = next[k].def, next[k].values
			c.left -= int(n)
			k++
		}
	}
	r.row += n
	r.left -= n
	return n
}

type taken struct {
	def    runs
	values values
}

type blockSink interface {
	extend(n int) (at int, ok bool)
	shorten(n int)
	set(at int, v *value) bool
	// setAll converts n numbers, consecutive in b or at places, to indices at, at+stride, ….
	setAll(at, stride int, l *leaf, b []byte, places []uint32, n int) bool
	setClasses(at, stride int, d *dictionary, places []uint32) bool
}

func (f *field) column(c *cursor, numbers *[blockRows]uint32, at, n int) (taken, bool) {
	sink, t := f.sink.(blockSink), taken{c.def, c.decoded}
	if c.leaf.maxDef == 0 || t.def.skip(uint32(c.leaf.maxDef), uint64(n)) {
		switch v := c.decoded.(type) {
		case *plain:
			if w := v.width(); v.typ != typeFixed && w > 0 && f.fill == nil {
				rest := *v
				if len(rest.b) < n*w || !sink.setAll(at, f.width, c.leaf, rest.b, nil, n) {
					return t, false
				}
				rest.b = rest.b[n*w:]
				t.values = &rest
				return t, true
			}
		case *places:
			plain := v.dict.width() > 0 && v.dict.typ != typeFixed && f.fill == nil
			if plain || f.Classes != nil && v.dict.typ == typeBytes && v.dict.count <= mostClasses {
				rest, where := *v, numbers[:n]
				if !rest.all(where) {
					return t, false
				}
				for _, p := range where {
					if uint64(p) >= uint64(v.dict.count) {
						return t, false
					}
				}
				t.values = &rest
				if plain {
					return t, sink.setAll(at, f.width, c.leaf, v.dict.b, where, n)
				}
				return t, sink.setClasses(at, f.width, v.dict, where)
			}
		}
	}
	return f.oneByOne(c, at, n)
}

// oneByOne works for all encodings and for nulls.
func (f *field) oneByOne(c *cursor, at, n int) (taken, bool) {
	sink := f.sink.(blockSink)
	t := taken{c.def, c.decoded.clone()}
	var v value
	for i := range n {
		there := true
		if c.leaf.maxDef > 0 {
			d, err := level(&t.def, c.leaf.maxDef)
			if err != nil {
				return t, false
			}
			there = d == c.leaf.maxDef
		}
		if there && t.values.next(&v) != nil {
			return t, false
		}
		if there && v.kind == float && f.fill != nil && (math.IsNaN(v.float) || math.IsInf(v.float, 0)) {
			there = false
		}
		from := &v
		if !there {
			if from = f.fill; from == nil {
				return t, false
			}
		}
		if !sink.set(at+i*f.width, from) {
			return t, false
		}
	}
	return t, true
}

func (s *slice[T]) extend(n int) (at int, ok bool) {
	at = len(s.values)
	if n > cap(s.values)-at {
		return at, false
	}
	s.values = s.values[:at+n]
	return at, true
}

func (s *slice[T]) shorten(n int) { s.values = s.values[:n] }

func (s *slice[T]) set(at int, v *value) bool {
	t, err := s.to(v)
	if err != nil {
		return false
	}
	s.values[at] = t
	return true
}

func (s *slice[T]) setAll(at, stride int, l *leaf, b []byte, places []uint32, n int) bool {
	if to, ok := any(s.values).([]float32); ok && !l.unsigned {
		return setFloats(to[at:], stride, l, b, places, n)
	}
	w := l.width()
	var v value
	for i := range n {
		p := i
		if places != nil {
			p = int(places[i])
		}
		l.set(&v, b[p*w:p*w+w])
		if !s.set(at+i*stride, &v) {
			return false
		}
	}
	return true
}

// setFloats is setAll without a call per value.
func setFloats(to []float32, stride int, l *leaf, b []byte, places []uint32, n int) bool {
	bad := uint32(0)
	put := func(i int, v float32) {
		to[i*stride] = v
		if bits := math.Float32bits(v); bits&notFinite == notFinite {
			bad = 1
		}
	}
	at := func(i int) int { return i }
	if places != nil {
		at = func(i int) int { return int(places[i]) }
	}
	switch l.typ {
	case typeFloat:
		if places == nil {
			for i := range n {
				bits := binary.LittleEndian.Uint32(b[4*i:])
				if to[i*stride] = math.Float32frombits(bits); bits&notFinite == notFinite {
					bad = 1
				}
			}
			break
		}
		for i, p := range places[:n] {
			bits := binary.LittleEndian.Uint32(b[4*int(p):])
			if to[i*stride] = math.Float32frombits(bits); bits&notFinite == notFinite {
				bad = 1
			}
		}
	case typeDouble:
		for i := range n {
			put(i, float32(math.Float64frombits(binary.LittleEndian.Uint64(b[8*at(i):]))))
		}
	case typeInt32:
		for i := range n {
			put(i, float32(int32(binary.LittleEndian.Uint32(b[4*at(i):]))))
		}
	case typeInt64:
		for i := range n {
			put(i, float32(int64(binary.LittleEndian.Uint64(b[8*at(i):]))))
		}
	default:
		return false
	}
	return bad == 0
}

// infinities and NaNs have these bits
const notFinite = 0x7f800000

const mostClasses = 256

// setClasses looks up each text once.
func (s *slice[T]) setClasses(at, stride int, d *dictionary, places []uint32) bool {
	if d.classes == nil {
		d.classes = make([]int32, 0, mostClasses)
	}
	for i := len(d.classes); i < d.count; i++ {
		class := int32(-1) // an error if used
		if t, err := s.to(&value{kind: text, text: d.text(i)}); err == nil {
			class, _ = any(t).(int32)
		}
		d.classes = append(d.classes, class)
	}
	to, ok := any(s.values).([]int32)
	if !ok {
		return false
	}
	for i, p := range places {
		if to[at+i*stride] = d.classes[p]; d.classes[p] < 0 {
			return false
		}
	}
	return true
}

func (r *runs) skip(v uint32, n uint64) bool {
	if r.left < n || r.packed != nil || r.same != v {
		return false
	}
	r.left -= n
	return true
}

func (r *runs) all(to []uint32) bool {
	for len(to) > 0 {
		for r.left == 0 {
			if r.run() != nil {
				return false
			}
		}
		n := int(min(r.left, uint64(len(to))))
		r.left -= uint64(n)
		part := to[:n]
		to = to[n:]
		if r.packed == nil {
			for i := range part {
				part[i] = r.same
			}
			continue
		}
		if r.bit+uint64(n)*uint64(r.width) > 8*uint64(len(r.packed)) {
			return false
		}
		mask := uint32(1<<r.width - 1)
		for i := range part {
			if at := r.bit >> 3; at+8 <= uint64(len(r.packed)) {
				part[i] = uint32(binary.LittleEndian.Uint64(r.packed[at:])>>(r.bit&7)) & mask
			} else {
				part[i] = uint32(bitsAt(r.packed, r.bit, r.width))
			}
			r.bit += uint64(r.width)
		}
	}
	return true
}
