package safetensors

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/lazo-ml/lazo/internal/listed"
)

const (
	preamble     = 8
	metadataName = "__metadata__"
)

var errShort = fmt.Errorf("the file ends too early: copy or download it again: %w", io.ErrUnexpectedEOF)

// entry is a tensor of a checked header. Its dims stay text: a tensor may take only 50 bytes of a file.
type entry struct {
	name   string
	shape  string
	begin  int64 // in bytes from the header's end
	length int64
	dtype  DType
}

func (e *entry) tensor() Tensor {
	s, dims := scanner{text: e.shape}, []int{}
	_ = s.array(func() error { // already parsed without an error
		dim, err := s.integer()
		dims = append(dims, int(dim))
		return err
	})
	return Tensor{Name: e.name, DType: e.dtype, Dims: dims}
}

type header struct {
	entries  []entry // in the order of their bytes, which fill the file
	byName   []int32
	metadata map[string]string
}

func parseHeader(text string, size int64, limits Limits) (header, error) {
	p := headerParser{scanner: scanner{text: text}, limits: limits}
	for i, r := range text { // invalid UTF-8 yields a U+FFFD of width 1
		if r == utf8.RuneError {
			if _, width := utf8.DecodeRuneInString(text[i:]); width == 1 {
				return header{}, p.errorAt(i, "byte 0x%02x is not UTF-8", text[i])
			}
		}
	}
	if len(text) > 0 && text[0] != '{' {
		return header{}, p.unexpected("'{' as its first byte")
	}
	p.entries = make([]entry, 0, min(memberCount(text), limits.Tensors))
	if err := p.object(p.member); err != nil {
		return header{}, err
	}
	if p.space(); p.pos < len(text) {
		return header{}, p.unexpected("only spaces after the object")
	}
	h := header{entries: p.entries, metadata: p.metadata}
	if err := h.checkLayout(int64(preamble+len(text)), size); err != nil {
		return header{}, err
	}
	return h, h.indexNames()
}

// Growing a slice would take five times its size: this estimates the members, bounded by the text's length.
func memberCount(text string) int {
	const shortest = len(`"":{"dtype":"U8","shape":[],"data_offsets":[0,0]},`)
	members, depth, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ':' && depth == 1:
			members++
		}
	}
	return min(members, len(text)/shortest+1)
}

// The entries are sorted by their bytes, which must fill size bytes without overlap or gap. base is the elements'
// offset.
func (h *header) checkLayout(base, size int64) error {
	order := func(a, b entry) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.length, b.length)) }
	if !slices.IsSortedFunc(h.entries, order) {
		slices.SortStableFunc(h.entries, order)
	}
	end := int64(0)
	for i := range h.entries {
		e := &h.entries[i]
		switch {
		case e.begin < end:
			return &FormatError{base + e.begin, e.name,
				fmt.Errorf("its data_offsets begin at %d, in another tensor, which ends at %d", e.begin, end)}
		case e.begin > end:
			return &FormatError{base + end, e.name,
				fmt.Errorf("its data_offsets begin at %d, expected %d, where the tensor before it ends", e.begin, end)}
		case e.length > size-e.begin:
			return &FormatError{base + e.begin, e.name,
				fmt.Errorf("its %d bytes do not fit into the %d that are left: %w", e.length, size-e.begin, errShort)}
		}
		end = e.begin + e.length
	}
	if end != size {
		return &FormatError{base + end, "", fmt.Errorf("%d bytes belong to no tensor, expected the file to end", size-end)}
	}
	return nil
}

func (h *header) indexNames() error {
	h.byName = make([]int32, len(h.entries))
	for i := range h.byName {
		h.byName[i] = int32(i)
	}
	slices.SortFunc(h.byName, func(a, b int32) int { return cmp.Compare(h.entries[a].name, h.entries[b].name) })
	for i := 1; i < len(h.byName); i++ {
		if name := h.entries[h.byName[i]].name; name == h.entries[h.byName[i-1]].name {
			return &FormatError{preamble, name, errors.New("the header has two of this name")}
		}
	}
	return nil
}

func (h *header) find(name string) (*entry, bool) {
	at, found := slices.BinarySearchFunc(h.byName, name, func(i int32, name string) int {
		return cmp.Compare(h.entries[i].name, name)
	})
	if !found {
		return nil, false
	}
	return &h.entries[h.byName[at]], true
}

type headerParser struct {
	scanner
	limits   Limits
	entries  []entry
	metadata map[string]string
	dims     []int
}

func (p *headerParser) member(name string, at int) error {
	if name == metadataName {
		if p.metadata != nil {
			return p.errorAt(at, "a second %s", metadataName)
		}
		return p.readMetadata()
	}
	if len(name) > p.limits.Name {
		return p.errorAt(at, "the name %s, expected at most %d bytes: %w", listed.Quoted(name), p.limits.Name, ErrLimit)
	}
	if len(p.entries) == p.limits.Tensors {
		return p.errorAt(at, "more than %d tensors: %w", p.limits.Tensors, ErrLimit)
	}
	e, err := p.readEntry(at)
	if err != nil {
		if format := (*FormatError)(nil); errors.As(err, &format) {
			format.Tensor = name
		}
		return err
	}
	e.name = name
	p.entries = append(p.entries, e)
	return nil
}

func (p *headerParser) readMetadata() error {
	p.metadata = map[string]string{}
	return p.object(func(key string, at int) error {
		if _, twice := p.metadata[key]; twice {
			return p.errorAt(at, "%s has %s twice", metadataName, listed.Quoted(key))
		}
		if len(p.metadata) == p.limits.Metadata {
			return p.errorAt(at, "%s has more than %d entries: %w", metadataName, p.limits.Metadata, ErrLimit)
		}
		text, err := p.string()
		p.metadata[key] = text
		return err
	})
}

func (p *headerParser) readEntry(at int) (e entry, err error) {
	p.dims = p.dims[:0]
	var offsets [2]int64
	hasShape, hasOffsets, n := false, false, 0
	err = p.object(func(field string, at int) error {
		switch {
		case field == "dtype" && e.dtype == 0:
			return p.readDType(&e)
		case field == "shape" && !hasShape:
			hasShape = true
			return p.readShape(&e)
		case field == "data_offsets" && !hasOffsets:
			hasOffsets = true
			return p.array(func() (err error) {
				if n == len(offsets) {
					return p.errorf("more than 2 data_offsets")
				}
				offsets[n], err = p.integer()
				n++
				return err
			})
		case field == "dtype" || field == "shape" || field == "data_offsets":
			return p.errorAt(at, "a second field %s", field)
		}
		return p.errorAt(at, "unknown field %s, expected dtype, shape and data_offsets", listed.Quoted(field))
	})
	switch {
	case err != nil:
		return e, err
	case e.dtype == 0:
		return e, p.errorAt(at, "no field dtype")
	case !hasShape:
		return e, p.errorAt(at, "no field shape")
	case n != len(offsets):
		return e, p.errorAt(at, "%d data_offsets, expected a begin and an end", n)
	case offsets[1] < offsets[0]:
		return e, p.errorAt(at, "data_offsets %v end before they begin", offsets)
	}
	e.begin, e.length = offsets[0], offsets[1]-offsets[0]
	size, err := byteSize(e.dtype, p.dims)
	if err != nil {
		return e, p.errorAt(at, "%w", err)
	}
	if size != e.length {
		return e, p.errorAt(at, "data_offsets %v hold %d bytes, expected %d for dims %v of %v", offsets, e.length, size, p.dims, e.dtype)
	}
	return e, nil
}

func (p *headerParser) readDType(e *entry) error {
	p.space()
	at := p.pos
	name, err := p.string()
	if err != nil {
		return err
	}
	if e.dtype = dtypeNamed(name); e.dtype == 0 {
		return p.errorAt(at, "%w", unknownDType(name))
	}
	return nil
}

func (p *headerParser) readShape(e *entry) error {
	p.space()
	start := p.pos
	err := p.array(func() error {
		if len(p.dims) == p.limits.Rank {
			return p.errorf("more than %d axes: %w", p.limits.Rank, ErrLimit)
		}
		dim, err := p.integer()
		if err == nil && dim > math.MaxInt {
			err = p.errorf("an axis of length %d: %w", dim, ErrLimit)
		}
		p.dims = append(p.dims, int(dim))
		return err
	})
	e.shape = p.text[start:p.pos]
	return err
}
