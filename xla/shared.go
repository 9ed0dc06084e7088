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
	// compiling has a channel for each program, closed at its end.
	compiling map[programKey]chan struct{}
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

// program compiles a text once: callers that ask meanwhile wait, and the next one compiles after an error.
func (s *sharedPrograms) program(text string, options pjrt.CompileOptions, compile func() (*pjrt.Executable, error)) (*sharedProgram, error) {
	key := keyOf(text, options)
	p, ended := s.begin(key)
	if p != nil {
		return p, nil
	}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.compiling, key)
		close(ended)
	}()
	e, err := compile()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[key] = &sharedProgram{Executable: e, key: key, text: len(text), uses: 1}
	return s.of[key], nil
}

// begin returns the program, or marks it as being compiled until its caller closes ended.
func (s *sharedPrograms) begin(key programKey) (p *sharedProgram, ended chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := s.compiling[key]; other != nil; other = s.compiling[key] {
		s.mu.Unlock()
		<-other
		s.mu.Lock()
	}
	if p = s.use(key); p != nil {
		return p, nil
	}
	if s.of == nil {
		s.of, s.compiling = map[programKey]*sharedProgram{}, map[programKey]chan struct{}{}
	}
	ended = make(chan struct{})
	s.compiling[key] = ended
	return nil, ended
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
