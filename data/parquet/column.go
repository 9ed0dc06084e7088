package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/lazo-ml/lazo/data"
)

type chunk struct {
	codec      int
	typ        int
	values     int64
	at, length int64
	elsewhere  bool
	encrypted  bool
}

type group struct {
	rows   int64
	chunks []chunk
}

func (f *footer) next(wanted map[int]int) (group, error) {
	g := group{chunks: make([]chunk, len(wanted))}
	if f.count == 0 {
		return g, errors.New("the file has fewer row groups than it says")
	}
	f.count--
	t := &f.groups
	columns := 0
	t.fields(func(id int64, kind byte) {
		switch id {
		case 1:
			n, of := t.list(kind)
			columns = n
			for i := 0; i < n && t.err == nil; i++ {
				k, ok := wanted[i]
				if !ok {
					t.skip(of)
					continue
				}
				g.chunks[k] = columnChunk(t, of)
			}
		case 3:
			g.rows = t.int(kind)
		}
	})
	if t.err == nil && columns != len(f.leaves) {
		t.err = fmt.Errorf("a row group has %d columns, the schema %d", columns, len(f.leaves))
	}
	if t.err != nil {
		return g, fmt.Errorf("the footer: %w", t.err)
	}
	return g, nil
}

func columnChunk(t *thrift, kind byte) chunk {
	var c chunk
	dictionary := int64(0)
	t.structure(kind, func(id int64, kind byte) {
		switch id {
		case 1:
			c.elsewhere = len(t.bytes(kind)) > 0
		case 3:
			t.structure(kind, func(id int64, kind byte) {
				switch id {
				case 1:
					c.typ = small(t, kind)
				case 4:
					c.codec = small(t, kind)
				case 5:
					c.values = t.int(kind)
				case 7:
					c.length = t.int(kind)
				case 9:
					c.at = t.int(kind)
				case 11:
					dictionary = t.int(kind)
				}
			})
		case 8, 9:
			c.encrypted = true
		}
	})
	if dictionary > 0 && dictionary < c.at {
		c.at = dictionary
	}
	return c
}

type cursor struct {
	*unpacker
	leaf *leaf

	at, end int64
	codec   int
	values  int64
	page    []byte
	dict    dictionary
	left    int // levels in the page
	rep     runs
	def     runs
	decoded values

	loaded   bool
	r, d     int
	value    value
	pageFrom int64
}

func (c *cursor) open(k chunk, end int64) error {
	switch {
	case c.leaf.err != nil:
		return c.leaf.err
	case k.elsewhere || k.encrypted:
		return errors.New("it is in another file, or encrypted, which is not supported")
	case k.typ != c.leaf.typ:
		return fmt.Errorf("it has type %d in a row group, and %d in the schema", k.typ, c.leaf.typ)
	case k.values == 0: // without pages the offset is meaningless
		k = chunk{codec: k.codec}
	case k.at < 4 || k.length < 0 || k.at > end || k.length > end-k.at || k.values < 0:
		return fmt.Errorf("%d values in %d bytes from byte %d on, expected them between byte 4 and %d", k.values, k.length, k.at, end)
	}
	c.at, c.end, c.codec, c.values = k.at, k.at+k.length, k.codec, k.values
	c.left, c.loaded = 0, false
	c.dict.leaf = nil
	return nil
}

// peek decodes the next level and value; false is the chunk's end.
func (c *cursor) peek() (bool, error) {
	for !c.loaded {
		if c.left == 0 {
			if c.values == 0 {
				return false, nil
			}
			if err := c.nextPage(); err != nil {
				return false, c.damage(err)
			}
			continue
		}
		if err := c.load(); err != nil {
			return false, c.damage(err)
		}
	}
	return true, nil
}

func (c *cursor) damage(err error) error {
	if format := (*data.FormatError)(nil); errors.As(err, &format) || errors.Is(err, data.ErrLimit) {
		return fmt.Errorf("column %q: %w", c.leaf.name, err)
	}
	return damaged(c.pageFrom, "column %q: %w", c.leaf.name, err)
}

func (c *cursor) load() (err error) {
	c.r, c.d = 0, 0
	if c.leaf.repeats > 0 {
		if c.r, err = level(&c.rep, c.leaf.repeats); err != nil {
			return err
		}
	}
	if c.leaf.maxDef > 0 {
		if c.d, err = level(&c.def, c.leaf.maxDef); err != nil {
			return err
		}
	}
	if c.d == c.leaf.maxDef {
		if err := c.decoded.next(&c.value); err != nil {
			return err
		}
	}
	c.left--
	c.loaded = true
	return nil
}

func level(r *runs, most int) (int, error) {
	v, err := r.next()
	if err == nil && int(v) > most {
		err = fmt.Errorf("a level of %d, expected at most %d", v, most)
	}
	return int(v), err
}

func (c *cursor) nextPage() error {
	c.pageFrom = c.at
	if c.at >= c.end {
		return fmt.Errorf("the pages end %d values too early: %w", c.values, io.ErrUnexpectedEOF)
	}
	h, length, err := c.pageHeader(c.at, c.end)
	if err != nil {
		return err
	}
	from := c.at + length
	if int64(h.packed) > c.end-from {
		return fmt.Errorf("the page has %d bytes, where %d are left: %w", h.packed, c.end-from, io.ErrUnexpectedEOF)
	}
	c.at = from + int64(h.packed)
	switch h.typ {
	case pageDictionary:
		c.dict.buffer, err = c.unpacker.page(h, c.codec, from, c.dict.buffer)
		if c.dict.b = c.dict.buffer; err != nil {
			return err
		}
		if h.encoding != encodingPlain && h.encoding != encodingPlainDict {
			return fmt.Errorf("the dictionary has the encoding %d, expected plain", h.encoding)
		}
		return c.dict.fill(c.leaf, h.values, c.mem)
	case pageData, pageDataV2:
		if int64(h.values) > c.values {
			return fmt.Errorf("the page has %d values, where %d are left", h.values, c.values)
		}
		if c.page, err = c.unpacker.page(h, c.codec, from, c.page); err != nil {
			return err
		}
		c.values -= int64(h.values)
		c.left = h.values
		return c.begin(h)
	}
	return nil // an index
}

func (c *cursor) begin(h pageHeader) error {
	b := c.page
	c.rep = runs{width: levelBits(c.leaf.repeats)}
	c.def = runs{width: levelBits(c.leaf.maxDef)}
	if h.typ == pageDataV2 {
		c.rep.b, c.def.b, b = b[:h.repBytes], b[h.repBytes:][:h.defBytes], b[h.repBytes+h.defBytes:]
	} else {
		for i, r := range []*runs{&c.rep, &c.def} {
			if r.width == 0 {
				continue
			}
			if h.levels[1-i] != encodingRuns {
				return fmt.Errorf("levels of the encoding %d, which is not supported: expected run length", h.levels[1-i])
			}
			if len(b) < 4 || uint64(binary.LittleEndian.Uint32(b)) > uint64(len(b)-4) {
				return errPageShort
			}
			n := int(binary.LittleEndian.Uint32(b))
			r.b, b = b[4:4+n], b[4+n:]
		}
	}
	var err error
	c.decoded, err = newValues(c.leaf, h.encoding, b, h.values, &c.dict)
	return err
}
