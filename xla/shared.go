package xla

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lazo-ml/lazo/xla/pjrt"
)

// shared are the programs of a client, so that one text is compiled once, however many models have it as their step: a
// second model of the same structure, another seed, a state that moved. The key is all that decides what the plugin
// makes.
//
// The last ones that are no longer in use are kept, for programs that close one model before they make the next.
type shared struct {
	mu   sync.Mutex
	of   map[programKey]*sharedProgram
	idle []*sharedProgram // in the order in which they were given back
	keep int              // how many may be idle
	hits atomic.Int64
}

type programKey [sha256.Size]byte

// sharedProgram is a program that several may use.
type sharedProgram struct {
	*pjrt.Executable
	key  programKey
	text int // its length
	uses int // how many use it
}

const (
	// idlePrograms is how many are kept: the training, the test and the prediction step of a few models.
	idlePrograms = 12
	// idleText is the length of the longest text that is kept: a longer one may have large constants, and the memory
	// for them.
	idleText = 1 << 20
)

// KeepPrograms sets how many compiled programs that were closed a runtime keeps, 12 without it, so that a model of the
// same structure as one that was closed compiles nothing; 0 keeps none. (Two that are open share their programs in any
// case.) One with a text longer than 1 MiB, because of constants, is never kept. For later processes there is
// [CompileCache].
func KeepPrograms(n int) Option {
	return func(o *options) {
		if n < 0 {
			o.err = fmt.Errorf("xla: keep programs: the number must not be negative, got %d", n)
		}
		o.programs = n
	}
}

func keyOf(text string, options pjrt.CompileOptions) programKey {
	return sha256.Sum256(fmt.Appendf(nil, "%+v\n%s", options, text))
}

// program gives the program of a text, and has it compiled if there is none. Two that are compiled at once by different
// goroutines become one: the first that is ready.
func (s *shared) program(text string, options pjrt.CompileOptions, compile func() (*pjrt.Executable, error)) (*sharedProgram, error) {
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

// use gives a program that is there already, nil if there is none. The lock is held.
func (s *shared) use(key programKey) *sharedProgram {
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

// giveBack is the Close of one user of a program.
func (s *shared) giveBack(p *sharedProgram) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.uses--; p.uses > 0 {
		return nil
	}
	pjrt.FreeBlocks() // a program that is only kept needs no memory
	gone := []*sharedProgram{p}
	if p.text <= idleText {
		s.idle, gone = append(s.idle, p), nil
	}
	if over := len(s.idle) - s.keep; over > 0 {
		gone, s.idle = slices.Clone(s.idle[:over]), slices.Delete(s.idle, 0, over)
	}
	return s.free(gone)
}

func (s *shared) free(gone []*sharedProgram) error {
	var errs []error
	for _, p := range gone {
		delete(s.of, p.key)
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// close frees what is not in use, and has the rest freed when it is given back.
func (s *shared) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.idle
	s.idle, s.keep = nil, 0
	return s.free(gone)
}
