package tables

import (
	"bytes"
	"io"
	"iter"
	"sync"

	"github.com/lazo-ml/lazo/data/internal/packed"
)

type csvText struct {
	text []byte
	line int
	// The last row is incomplete and too long.
	tooLong bool
}

type csvSource struct {
	io.Reader
	block  int
	most   int
	single bool
	held   []byte
	line   int
	read   int64
	ended  bool
	err    error
	spare  sync.Pool
}

func (s *csvSource) next() (csvText, error) {
	for want := s.block; ; want *= 2 {
		s.fill(want)
		tooLong := len(s.held) > s.most+csvBuffer
		end := len(s.held)
		if !s.ended || s.err != nil {
			end = s.border()
		}
		switch {
		case end > 0:
			return s.cut(end, false), nil
		case tooLong:
			return s.cut(len(s.held), true), nil
		case s.err != nil:
			return csvText{}, packed.ReadError(s.read, "in the rows", s.err)
		case s.ended:
			return csvText{}, io.EOF
		}
	}
}

func (s *csvSource) fill(want int) {
	for !s.ended && len(s.held) < want {
		if cap(s.held) < want {
			s.held = append(make([]byte, 0, want), s.held...)
		}
		n, err := s.Read(s.held[len(s.held):want])
		s.held, s.read = s.held[:len(s.held)+n], s.read+int64(n)
		if err != nil {
			s.ended = true
			if err != io.EOF {
				s.err = err
			}
		}
	}
}

// border is a line end after an even number of quotes. A misplaced quote ends the reading anyway.
func (s *csvSource) border() int {
	inside := bytes.Count(s.held, []byte{'"'})%2 == 1
	for i := len(s.held) - 1; i >= 0; i-- {
		switch s.held[i] {
		case '"':
			inside = !inside
		case '\n':
			if !inside && !(s.single && emptyLine(s.held[:i])) {
				return i + 1
			}
		}
	}
	return 0
}

func emptyLine(text []byte) bool {
	text = bytes.TrimSuffix(text, []byte{'\r'})
	return len(text) == 0 || text[len(text)-1] == '\n'
}

func onlyEmptyLines(text []byte) bool {
	for len(text) > 0 {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return len(text) == 1 && text[0] == '\r'
		}
		if !emptyLine(text[:end]) {
			return false
		}
		text = text[end+1:]
	}
	return true
}

func (s *csvSource) cut(end int, tooLong bool) csvText {
	memory, _ := s.spare.Get().(*[]byte)
	if memory == nil {
		memory = new([]byte)
	}
	b := csvText{append((*memory)[:0], s.held[:end]...), s.line, tooLong}
	s.line += bytes.Count(b.text, []byte{'\n'})
	s.held = s.held[:copy(s.held, s.held[end:])]
	return b
}

// giveBack's lines were read before the number of columns was known.
func (s *csvSource) giveBack(b csvText) csvText {
	end := len(b.text)
	for end > 0 && b.text[end-1] == '\n' && emptyLine(b.text[:end-1]) {
		end = len(bytes.TrimSuffix(b.text[:end-1], []byte{'\r'}))
	}
	s.held = append(bytes.Clone(b.text[end:]), s.held...)
	s.line -= bytes.Count(b.text[end:], []byte{'\n'})
	b.text = b.text[:end]
	return b
}

func (s *csvSource) blocks(first csvText) iter.Seq2[csvText, error] {
	return func(yield func(csvText, error) bool) {
		if len(first.text) > 0 && !yield(first, nil) || first.tooLong {
			return
		}
		for {
			b, err := s.next()
			if err == io.EOF || !yield(b, err) || err != nil || b.tooLong {
				return
			}
		}
	}
}
