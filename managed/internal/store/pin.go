package store

import (
	"errors"
	"io"
	"sync"

	"github.com/gomlx/compute"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// Pin keeps a value for readers. A change uses a copy, and the last holder frees the buffer.
type Pin struct {
	Buffer compute.Buffer
	on     strategies.Strategy

	mu    sync.Mutex
	users int
	left  bool
}

func (s *Store) Pin(at int) *Pin {
	s.pinning.Lock()
	defer s.pinning.Unlock()
	p := s.pins[at]
	if p == nil {
		p = &Pin{on: s.strategy, Buffer: s.values[at].buffer}
		s.pins[at] = p
	}
	p.mu.Lock()
	p.users++
	p.mu.Unlock()
	return p
}

func (p *Pin) Release() error {
	p.mu.Lock()
	p.users--
	free := p.left && p.users == 0
	p.mu.Unlock()
	if !free {
		return nil
	}
	return Free(p.on, p.Buffer)
}

// Write copies a value once, into the writer's own memory (checkpoint.Async has some) or spare.
func (p *Pin) Write(w io.Writer, buffer compute.Buffer, size int, spare *[]byte) error {
	var memory []byte
	if to, ok := w.(abilities.MemoryWriter); ok {
		memory = to.AvailableBuffer()
	}
	if cap(memory) < size {
		if cap(*spare) < size {
			*spare = make([]byte, size)
		}
		memory = *spare
	}
	memory = memory[:size]
	if size > 0 {
		if err := p.on.FetchInto(buffer, memory); err != nil {
			return err
		}
	}
	_, err := w.Write(memory)
	return err
}

func (p *Pin) leave() (held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = true
	return p.users > 0
}

func (p *Pin) held() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.users > 0
}

// Free ignores a closed runtime, which has freed the buffers.
func Free(on strategies.Strategy, buffers ...compute.Buffer) error {
	if err := on.Free(buffers...); !errors.Is(err, xla.ErrClosed) {
		return err
	}
	return nil
}
