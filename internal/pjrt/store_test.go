package pjrt

import (
	"fmt"
	"sync"
	"time"
)

// mapStore is a KeyValueStore of clients in one process.
type mapStore struct {
	mu      sync.Mutex
	values  map[string][]byte
	timeout time.Duration // timeout of the last Get
	put     chan struct{} // closed by the next Put
	refused int           // puts of existing keys
}

func (s *mapStore) Get(key string, timeout time.Duration) ([]byte, error) {
	late := time.After(timeout)
	for {
		s.mu.Lock()
		s.timeout = timeout
		value, ok := s.values[key]
		if s.put == nil {
			s.put = make(chan struct{})
		}
		put := s.put
		s.mu.Unlock()
		if ok {
			return value, nil
		}
		select {
		case <-put:
		case <-late:
			return nil, ErrDeadline
		}
	}
}

func (s *mapStore) TryGet(key string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value, ok := s.values[key]; ok {
		return value, nil
	}
	return nil, fmt.Errorf("key %q: %w", key, ErrKeyNotFound)
}

func (s *mapStore) Put(key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.values[key]; ok {
		s.refused++
		return fmt.Errorf("key %q: %w", key, ErrKeyExists)
	}
	s.values[key] = value
	if s.put != nil {
		close(s.put)
		s.put = nil
	}
	return nil
}
