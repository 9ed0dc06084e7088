package xla

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

type sharedPrograms struct {
	mu   sync.Mutex
	of   map[programKey]*sharedProgram
	idle []*sharedProgram // first closed first
	keep int
	hits atomic.Int64
}

type programKey [sha256.Size]byte

type sharedProgram struct {
	*pjrt.Executable
	key  programKey
	text int
	uses int
}

const (
	idlePrograms = 12
	// idleText excludes large constants.
	idleText = 1 << 20
)

func keyOf(text string, options pjrt.CompileOptions) programKey {
	return sha256.Sum256(fmt.Appendf(nil, "%+v\n%s", options, text))
}

// program compiles outside the lock, and shares the first result.
func (s *sharedPrograms) program(text string, options pjrt.CompileOptions, compile func() (*pjrt.Executable, error)) (*sharedProgram, error) {
	key := keyOf(text, options)
	s.mu.Lock()
	p := s.use(key)
	s.mu.Unlock()
	if p != nil {
		return p, nil
	}
	e, err := compile()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.use(key); p != nil {
		return p, e.Close()
	}
	if s.of == nil {
		s.of = map[programKey]*sharedProgram{}
	}
	p = &sharedProgram{Executable: e, key: key, text: len(text), uses: 1}
	s.of[key] = p
	return p, nil
}

// use requires the lock.
func (s *sharedPrograms) use(key programKey) *sharedProgram {
	p := s.of[key]
	if p == nil {
		return nil
	}
	if p.uses == 0 {
		s.idle = slices.DeleteFunc(s.idle, func(i *sharedProgram) bool { return i == p })
	}
	p.uses++
	s.hits.Add(1)
	return p
}

func (s *sharedPrograms) giveBack(p *sharedProgram) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.uses--; p.uses > 0 {
		return nil
	}
	pjrt.FreeBlocks() // an idle program needs no memory
	gone := []*sharedProgram{p}
	if p.text <= idleText {
		s.idle, gone = append(s.idle, p), nil
	}
	if over := len(s.idle) - s.keep; over > 0 {
		gone, s.idle = slices.Clone(s.idle[:over]), slices.Delete(s.idle, 0, over)
	}
	return s.free(gone)
}

func (s *sharedPrograms) free(gone []*sharedProgram) error {
	var errs []error
	for _, p := range gone {
		delete(s.of, p.key)
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

func (s *sharedPrograms) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.idle
	s.idle, s.keep = nil, 0
	return s.free(gone)
}
